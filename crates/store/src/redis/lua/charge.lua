#!lua
-- Checks and charges the limits of one or several requests, in their order: each request whole or not
-- at all. The rules are those of tidegate-core; its tests compare both, step by step.
--
-- KEYS     the counters, each once
-- ARGV[1]  25 bytes a counter: kind, then three numbers of that kind (see `open`)
-- ARGV[2]  23 bytes a charge: flags, counter, then four numbers of the counter's kind (see `admits`)
-- ARGV[3]  the instant, or '' for this server's clock
-- ARGV[4]  with an instant: how long counters are kept, in ms
--
-- All times are microseconds since the Unix epoch; every number is an integer below 2^53, exact in a
-- double. Everything is read and decided before anything is written, and no write can fail for its
-- arguments: a script that fails half-way is not rolled back.
--
-- Returns the instant, how many broken counters were mended, a bit for each admitted request; then for
-- each charge what it found: the state of its counter (two numbers, three for a sliding counter or a
-- calendar), or of a log the units used, the oldest entry, the log's own time, the wait, the wait for one
-- unit, and that before the request. If the instant is in none of the given calendar periods, only -1 and the instant.

local FIXED, COUNTER, CALENDAR, BUCKET, LOG = 1, 2, 3, 4, 5
local TAKE, ENFORCE, LAST = 1, 2, 4

local call, pcall = redis.call, redis.pcall
local read, write = struct.unpack, struct.pack
local floor, ceil = math.floor, math.ceil

local now, given = tonumber(ARGV[3]), true
if not now then
  local time = call('TIME')
  now, given = time[1] * 1000000 + time[2], false
end

-- Of each counter: its kind, what it was called with, and its state as the charges so far left it.
local kinds, p1, p2, p3 = {}, {}, {}, {}
local s1, s2, s3 = {}, {}, {}
local was_there, is_changed = {}, {}
local mended = 0

-- A value that outlived its window by a second had no expiry; the next write gives it one.
local function mended_if_stale(i, ends)
  if was_there[i] and not given and ends + 1000000 < now then mended = mended + 1 end
end

-- x·y ≤ u·v, exactly: products as unevaluated sums of two doubles (Dekker, "A floating-point technique
-- for extending the available precision", 1971).
local function product(x, y)
  local p = x * y
  local t = 134217729 * x
  local x1 = t - (t - x)
  local x2 = x - x1
  t = 134217729 * y
  local y1 = t - (t - y)
  local y2 = y - y1
  return p, ((x1 * y1 - p) + x1 * y2 + x2 * y1) + x2 * y2
end

local function product_at_most(x, y, u, v)
  local high, low = product(x, y)
  local high_most, low_most = product(u, v)
  return high < high_most or (high == high_most and low <= low_most)
end

-- A log is a list: an entry that has left (or stood for the time before), then those in the window, each
-- with its instant and the units taken up to and with it. `logs[i]` says where the window begins.
local logs = {}

local function entry(i, at)
  return read('>I7I6', call('LINDEX', KEYS[i], at))
end

-- The first place in first..last whose entry passes; last + 1 if none does. Passing is monotone.
local function first_place(i, first, last, passes)
  while first <= last do
    local middle = floor((first + last) / 2)
    if passes(entry(i, middle)) then last = middle - 1 else first = middle + 1 end
  end
  return first
end

local function open_log(i, window)
  local log = {base = 0, first = 1, last = 0, at = now, oldest = 0, units = 0, newest = -1}
  logs[i] = log
  s1[i] = 0
  local size = pcall('LLEN', KEYS[i])
  if size == 0 then return end
  local left, newest = pcall('LINDEX', KEYS[i], 0), pcall('LINDEX', KEYS[i], -1)
  if size == 1 or #left ~= 13 or #newest ~= 13 then
    -- Another type's, or not a log: `#` of an error is 0.
    mended = mended + 1
    log.is_broken = true
    return
  end
  was_there[i] = true
  log.last = size - 1
  local base, sum
  left, base = read('>I7I6', left)
  newest, sum = read('>I7I6', newest)
  log.at = math.max(now, newest, left + window)
  log.newest, log.sum, log.base = newest, sum, base
  mended_if_stale(i, newest + window)
  local horizon = log.at - window
  if newest <= horizon then
    log.first, log.base = size, sum
    return
  end
  local oldest, after = entry(i, 1)
  if oldest <= horizon then
    log.first = first_place(i, 2, log.last, function(at) return at > horizon end)
    local _, gone = entry(i, log.first - 1)
    log.base = gone
    oldest, after = entry(i, log.first)
  end
  s1[i], log.oldest, log.units = sum - log.base, oldest, after - log.base
end

-- How long until `units` more than what is free have left a log.
local function log_wait(i, units)
  local log, window = logs[i], p1[i]
  if units <= log.units then return log.oldest + window - log.at end
  local place = first_place(i, log.first, log.last, function(_, sum) return sum - log.base >= units end)
  if place > log.last then return window end
  local at = entry(i, place)
  return at + window - log.at
end

-- Reads a counter; false if a calendar period for this instant was not given.
local function open(i, kind, a, b, c, value)
  kinds[i], p1[i], p2[i], p3[i] = kind, a, b, c
  was_there[i] = value and true
  if kind == FIXED then
    -- a: the window.
    local window, used = 0, 0
    if value then
      if #value == 8 then window, used = read('>I4I4', value) else mended = mended + 1 end
      mended_if_stale(i, (window + 1) * a)
    end
    local current = floor(now / a)
    if window < current then window, used = current, 0 end
    s1[i], s2[i], s3[i] = window, used, 0
  elseif kind == BUCKET then
    -- a: ticks a microsecond.
    local full_at, ticks = 0, 0
    if value then
      if #value == 10 then full_at, ticks = read('>dI2', value) else mended = mended + 1 end
      mended_if_stale(i, full_at)
    end
    if full_at < now then full_at, ticks = now, 0 end
    s1[i], s2[i], s3[i] = full_at, ticks, 0
  elseif kind == COUNTER then
    -- a: the window.
    local window, previous, used = 0, 0, 0
    if value then
      if #value == 24 then window, previous, used = read('>ddd', value) else mended = mended + 1 end
      mended_if_stale(i, (window + 2) * a)
    end
    local current = floor(now / a)
    if window < current then
      previous = window + 1 == current and used or 0
      window, used = current, 0
    end
    s1[i], s2[i], s3[i] = window, previous, used
  elseif kind == CALENDAR then
    -- a, b, c: two periods, [a, b) and [b, c).
    local starts, ends, used = 0, 0, 0
    if value then
      if #value == 24 then starts, ends, used = read('>ddd', value) else mended = mended + 1 end
      mended_if_stale(i, ends)
    end
    if now >= ends then
      if now < a or now >= c then return false end
      if now < b then starts, ends = a, b else starts, ends = b, c end
      used = 0
    end
    s1[i], s2[i], s3[i] = starts, ends, used
  else
    -- a: the window.
    open_log(i, a)
  end
  return true
end

-- Windows: a units, of at most b. Buckets: a µs and c ticks, of at most b µs and d ticks.
local function admits(i, a, b, c, d)
  local kind = kinds[i]
  if a == 0 and c == 0 then return true end
  if kind == FIXED then return a <= b - s2[i] end
  if kind == BUCKET then
    local ticks = s2[i] + c
    local wanted = s1[i] - now + a
    if ticks >= p1[i] then ticks, wanted = ticks - p1[i], wanted + 1 end
    return wanted < b or (wanted == b and ticks <= d)
  end
  if kind == COUNTER then
    local free = b - s3[i] - a
    if free < 0 then return false end
    if s2[i] <= free then return true end
    local in_view = p1[i] - math.max(0, now - s1[i] * p1[i])
    return product_at_most(s2[i], in_view, free, p1[i])
  end
  if kind == CALENDAR then return a <= b - s3[i] end
  return a <= b - s1[i]
end

local function take(i, a, c)
  local kind = kinds[i]
  if kind == FIXED then
    s2[i] = s2[i] + a
  elseif kind == BUCKET then
    local full_at, ticks = s1[i] + a, s2[i] + c
    if ticks >= p1[i] then full_at, ticks = full_at + 1, ticks - p1[i] end
    s1[i], s2[i] = full_at, ticks
  elseif kind == LOG then
    local log = logs[i]
    if s1[i] == 0 then log.oldest, log.units = log.at, 0 end
    if log.oldest == log.at then log.units = log.units + a end
    s1[i] = s1[i] + a
  else
    s3[i] = s3[i] + a
  end
end

local reply = {now, 0, 0}
local filled = 3

-- Says what a charge finds.
local function find(i, a, b, request)
  local kind, n = kinds[i], filled
  reply[n + 1], reply[n + 2] = s1[i], s2[i]
  if kind == FIXED or kind == BUCKET then
    filled = n + 2
  elseif kind ~= LOG then
    reply[n + 3] = s3[i]
    filled = n + 3
  else
    local log, used = logs[i], s1[i]
    if log.request ~= request then log.request, log.before = request, used end
    reply[n + 2], reply[n + 3], reply[n + 4], reply[n + 5], reply[n + 6] = log.oldest, log.at, 0, 0, 0
    if a > b - used and a <= b and a > 0 then reply[n + 4] = log_wait(i, used + a - b) end
    if used > b and b > 0 then reply[n + 5] = log_wait(i, used + 1 - b) end
    if log.before > b and b > 0 then reply[n + 6] = log_wait(i, log.before + 1 - b) end
    filled = n + 6
  end
end

local function set(i, value, ends)
  if not was_there[i] and call('EXISTS', KEYS[i]) == 1 then mended = mended + 1 end
  if given then
    call('SET', KEYS[i], value, 'PX', ARGV[4])
  else
    call('SET', KEYS[i], value, 'PXAT', ceil(ends / 1000))
  end
end

local function save_log(i)
  local log, key, window = logs[i], KEYS[i], p1[i]
  if log.is_broken then call('DEL', key) end
  local sum = log.base + s1[i]
  if log.newest == log.at and log.first <= log.last then
    call('LSET', key, -1, write('>I7I6', log.at, sum))
  else
    if log.last == 0 then call('RPUSH', key, write('>I7I6', math.max(0, log.at - window), log.base)) end
    call('RPUSH', key, write('>I7I6', log.at, sum))
  end
  if log.first > 1 then call('LPOP', key, log.first - 1) end
  if given then
    call('PEXPIRE', key, ARGV[4])
  else
    call('PEXPIREAT', key, ceil((log.at + window) / 1000))
  end
end

local function save(i)
  local kind = kinds[i]
  if kind == FIXED then
    set(i, write('>I4I4', s1[i], s2[i]), (s1[i] + 1) * p1[i])
  elseif kind == BUCKET then
    set(i, write('>dI2', s1[i], s2[i]), s1[i] + (s2[i] > 0 and 1 or 0))
  elseif kind == COUNTER then
    set(i, write('>ddd', s1[i], s2[i], s3[i]), (s1[i] + 2) * p1[i])
  elseif kind == CALENDAR then
    set(i, write('>ddd', s1[i], s2[i], s3[i]), s2[i])
  else
    save_log(i)
  end
end

local values = call('MGET', unpack(KEYS))
for i = 1, #KEYS do
  local kind, a, b, c = read('>Bddd', ARGV[1], (i - 1) * 25 + 1)
  if not open(i, kind, a, b, c, values[i]) then return {-1, now} end
end

local admitted, bit = 0, 1
local takes, refused = {}, false
local count = #ARGV[2] / 23
for n = 0, count - 1 do
  local flags, i, a, b, c, d = read('>BI2ddI2I2', ARGV[2], n * 23 + 1)
  local last = flags >= LAST
  if last then flags = flags - LAST end
  local enforced = flags >= ENFORCE
  if enforced then flags = flags - ENFORCE end
  find(i, a, b, bit)
  if admits(i, a, b, c, d) then
    if flags == TAKE and (a > 0 or c > 0) then
      -- Taken for the charges of the same request that come after it, and given back if one refuses.
      takes[#takes + 1] = {i, s1[i], s2[i], s3[i], is_changed[i], logs[i] and logs[i].oldest, logs[i] and logs[i].units}
      take(i, a, c)
      is_changed[i] = true
    end
  elseif enforced then
    refused = true
  end
  if last then
    if refused then
      for t = #takes, 1, -1 do
        local undo = takes[t]
        local j = undo[1]
        s1[j], s2[j], s3[j], is_changed[j] = undo[2], undo[3], undo[4], undo[5]
        if logs[j] then logs[j].oldest, logs[j].units = undo[6], undo[7] end
      end
    else
      admitted = admitted + bit
    end
    takes, refused, bit = {}, false, bit * 2
  end
end

for i = 1, #KEYS do
  if is_changed[i] then save(i) end
end

reply[2], reply[3] = mended, admitted
return reply
