"""Two things that a JSON Schema cannot say, kept out of the right bodies that are made of it: to it
204.0 is an integer, where the server takes digits only; and it counts the characters of a text,
where the server counts bytes. Bodies that are wrong by the schema stay wrong."""

import schemathesis

NAME_MAX = 128
# The longest text below these keys.
VALUE_MAX = {"attributes": 8192, "when": 1024, "glob": 256}


def short(text, most):
    """A text of few enough characters, with few enough bytes as well."""
    fits = len(text) > most or len(text.encode("utf-8", "surrogatepass")) <= most
    return text if fits else text[: most // 4]


def sayable(value, most):
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and most is not None:
        return short(value, most)
    if isinstance(value, list):
        return [sayable(item, most) for item in value]
    if isinstance(value, dict):
        # Only names and values of attributes have bounds in bytes.
        return {
            short(key, NAME_MAX) if most is not None else key: sayable(item, VALUE_MAX.get(key, most))
            for key, item in value.items()
        }
    return value


@schemathesis.hook
def map_body(context, body):
    return sayable(body, None)
