"""Holds the patterns of times and rates in the OpenAPI document to what the server takes: one matches
where the other does not answer 400.

    patterns.py URL TOKEN
"""

import json
import re
import sys
import urllib.error
import urllib.request

TIMES = """
1s 120s 31622400s 31622401s 0s 00s 007s 59sec 60secs 1second 2seconds 90m 527040min 527041mins 8784h
8785hrs 36hour 366d 367d 365days 1day 1D 15MIN 15Min 1w 1month s d 1 1.5h -1h +1h 1hs /1h 1h/ 1ms
""".split() + ["", " 1h", "1 h", "1h ", "1  days  ", "1 0h", "h 1"]
RATES = """
0/s 00/s 1/s 600/min 10/30s 10/366d 10/367d 10/0s 1/1 /s 1/ 1/week 1/ms 9007199254740991/h
9007199254740992/h 09007199254740991/h 1/S 1/Hours 1/007d -1/s 1.5/s 1/s/s 1e3/s
""".split() + ["", " 1 / 2 min ", "1/ s", "1 0/s"]

url, token = sys.argv[1:]


def ask(method, path, body=None):
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data=data, headers=headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, json.loads(answer.read() or "null")
    except urllib.error.HTTPError as error:
        return error.code, None


def hold(path, key, texts, rest):
    schema = ask("GET", "/openapi.json")[1]["components"]["schemas"]
    pattern = re.compile(schema["NewOverride" if path.endswith("overrides") else "NewBlock"]["properties"][key]["pattern"])
    for text in texts:
        status, told = ask("POST", path, {**rest, key: text})
        if status == 201:
            ask("DELETE", f"{path}/{told['id']}")
        if (status != 400) != bool(pattern.search(text)):
            sys.exit(f"{key} {text!r} is answered {status}, and the pattern says otherwise")


when = {"when": {"org": "nobody"}}
hold("/v1/blocks", "for", TIMES, when)
hold("/v1/overrides", "for", TIMES, {**when, "limit": "org-month", "quota": 5})
hold("/v1/overrides", "rate", RATES, {**when, "limit": "agent-minute", "for": "1h"})
print(f"{2 * len(TIMES) + len(RATES)} times and rates are taken as the document says")
