#!lua
-- Gives back what a request took from counters, as it was refused elsewhere. What it finds changed, by
-- time or by a reset, it leaves; no expiry is moved.
--
-- KEYS     the counters, each once
-- ARGV[1]  the instant, or '' for this server's clock
-- ARGV[2]  what was taken, in bytes, 31 each, the last first: kind (1), counter (2), two numbers (8 each,
--          each with ticks, 2), a third (8); then a zero byte. The first number is of windows the window's,
--          or where the period begins; of a log the entry's instant; of a bucket, when it was to be full
--          again after that. The second is what was taken, in units or for a bucket in microseconds. The
--          third is a bucket's ticks in a microsecond, or a log's window.
--
-- Returns how many of them it gave back, at least in part.

local FIXED, BUCKET, COUNTER, CALENDAR, LOG = 1, 2, 3, 4, 5

local call = redis.call
local byte, read, write = string.byte, struct.unpack, struct.pack

local now = tonumber(ARGV[1])
if not now then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end

-- Another type's value is none of ours.
local function value_of(key, bytes)
  local value = redis.pcall('GET', key)
  return type(value) == 'string' and #value == bytes and value or nil
end

local function from_window(key, window, units)
  local value = value_of(key, 8)
  if not value then return 0 end
  local stored, used = read('>I4I4', value)
  if stored ~= window or used == 0 then return 0 end
  call('SETRANGE', key, 4, write('>I4', math.max(0, used - units)))
  return 1
end

-- By now it may be the window before.
local function from_counter(key, window, units)
  local value = value_of(key, 24)
  if not value then return 0 end
  local stored, before, used = read('>ddd', value)
  if stored == window then
    call('SETRANGE', key, 16, write('>d', math.max(0, used - units)))
  elseif stored == window + 1 then
    call('SETRANGE', key, 8, write('>d', math.max(0, before - units)))
  else
    return 0
  end
  return 1
end

local function from_period(key, start, units)
  local value = value_of(key, 24)
  if not value then return 0 end
  local stored, _, used = read('>ddd', value)
  if stored ~= start then return 0 end
  call('SETRANGE', key, 16, write('>d', math.max(0, used - units)))
  return 1
end

-- What has refilled since was given back by time.
local function from_bucket(key, made, made_ticks, cost, ticks, per_us)
  local value = value_of(key, 18)
  if not value then return 0 end
  local full_at, part = read('>dI2', value, 9)
  local left, left_ticks = made - now, made_ticks
  if left < 0 then return 0 end
  if left < cost or (left == cost and left_ticks < ticks) then cost, ticks = left, left_ticks end
  full_at, part = full_at - cost, part - ticks
  if part < 0 then full_at, part = full_at - 1, part + per_us end
  if full_at < 0 then full_at, part = 0, 0 end
  call('SETRANGE', key, 8, write('>dI2', full_at, part))
  return 1
end

-- Entries hold the units taken up to and with them, so those after this one change, too.
local function from_log(key, instant, units, window)
  local size = redis.pcall('LLEN', key)
  if type(size) ~= 'number' or size < 2 then return 0 end
  local entries, place = {}, size
  while place > 1 do
    local entry = call('LINDEX', key, place - 1)
    if #entry ~= 13 then return 0 end
    local at, sum = read('>I7I6', entry)
    if at < instant then return 0 end
    entries[place] = {at, sum}
    if at == instant then break end
    place = place - 1
  end
  if place < 2 then return 0 end
  local _, base = read('>I7I6', call('LINDEX', key, place - 2))
  local own = entries[place][2] - base
  units = math.min(units, own)
  for p = place, size do
    local at, sum = entries[p][1], entries[p][2] - units
    call('LSET', key, p - 1, write('>I7I6', at, sum))
  end
  if units == own then
    if size == 2 then
      -- What stands before the first entry is no counter without it.
      call('DEL', key)
    else
      call('LSET', key, place - 1, '')
      call('LREM', key, 1, '')
      if place == size and ARGV[1] == '' then
        -- The one before is the newest now, and goes sooner.
        local newest = read('>I7I6', call('LINDEX', key, -1))
        call('PEXPIREAT', key, math.ceil((newest + window) / 1000), 'LT')
      end
    end
  end
  return 1
end

local given, blob, place = 0, ARGV[2], 1
while byte(blob, place) > 0 do
  local kind, counter, a, a_ticks, b, b_ticks, c
  kind, counter, a, a_ticks, b, b_ticks, c, place = read('>BI2dI2dI2d', blob, place)
  local key = KEYS[counter]
  if kind == FIXED then
    given = given + from_window(key, a, b)
  elseif kind == COUNTER then
    given = given + from_counter(key, a, b)
  elseif kind == CALENDAR then
    given = given + from_period(key, a, b)
  elseif kind == BUCKET then
    given = given + from_bucket(key, a, a_ticks, b, b_ticks, c)
  elseif kind == LOG then
    given = given + from_log(key, a, b, c)
  end
end
return given
