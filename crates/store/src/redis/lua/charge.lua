#!lua
-- Checks and charges the limits of one or several requests, in their order: each request whole or not
-- at all. The rules are those of tidegate-core; its tests compare both, step by step.
--
-- KEYS     the counters, each once
-- ARGV[1]  the instant, or '' for this server's clock
-- ARGV[2]  what is asked, in bytes: how many rules (2), how many requests (1); the rules, each a kind (1)
--          and its numbers (see the loop that reads them); the charges, 5 bytes each: flags (1), rule (2),
--          counter (2)
-- ARGV[3]  with an instant: how long counters are kept, in ms
--
-- All times are microseconds since the Unix epoch; every number is an integer below 2^53, exact in a
-- double. Everything is read and decided before anything is written, and no write can fail for its
-- arguments: a script that fails half-way is not rolled back.
--
-- Returns the instant, how many broken counters were mended, a bit for each admitted request; then for
-- each charge what it found: the state of its counter (two numbers, three for a sliding counter or a
-- calendar), or of a log the units used, the oldest entry, the log's own time, the wait, the wait for one
-- unit, and that before the request. If the instant is in none of the given calendar periods, only -1 and
-- the instant.
--
-- The server runs the whole text for each call: functions are made only where they are needed, since
-- making one costs as much as a few of its calls; tables are made with room for the usual four, since
-- growing costs as much as making; and the two usual kinds are written out in the loop.

local FIXED, BUCKET, COUNTER, CALENDAR, LOG = 1, 2, 3, 4, 5
local TAKE, ENFORCE, LAST = 1, 2, 4

local call = redis.call
local byte, read, write = string.byte, struct.unpack, struct.pack

local now, keep_ms = tonumber(ARGV[1]), ARGV[3]
if not now then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end

-- The rules: of a window its length, the units asked for, and the most there may be; of a bucket the ticks
-- in a microsecond, what is asked for and the most there may be, each in whole microseconds and ticks; of
-- a calendar two periods, [a, b) and [b, c), the units and the most.
local blob = ARGV[2]
local kinds, lengths, costs, quotas = {0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}
local ticks, tick_quotas, others
local high, low, requests = byte(blob, 1, 3)
local at = 4
for r = 1, high * 256 + low do
  local kind = byte(blob, at)
  kinds[r] = kind
  if kind == FIXED then
    lengths[r], costs[r], quotas[r], at = read('>ddd', blob, at + 1)
  elseif kind == BUCKET then
    if not ticks then ticks, tick_quotas = {0, 0, 0, 0}, {0, 0, 0, 0} end
    lengths[r], costs[r], quotas[r], ticks[r], tick_quotas[r], at = read('>dddI2I2', blob, at + 1)
  elseif kind == CALENDAR then
    others = others or {}
    local period = {}
    period[1], period[2], period[3], costs[r], quotas[r], at = read('>ddddd', blob, at + 1)
    others[r] = period
  else
    others = others or {}
    lengths[r], costs[r], quotas[r], at = read('>ddd', blob, at + 1)
  end
end

-- Of each counter: its state as the charges so far left it, the rule that writes it if it has changed, and
-- whether it goes on in its window, so that its expiry stands.
local values = call('MGET', unpack(KEYS))
local s1, s2 = {false, false, false, false}, {false, false, false, false}
local changed, stands, s3 = {false, false, false, false}, {false, false, false, false}
-- What is not a state of its counter's: it is as never seen, and made anew when it is next written.
local broken
local LATEST, YEAR = 9007199254740992, 31622400000000
local mended = 0
local reply, filled = {now, 0, 0, 0, 0, 0, 0, 0, 0}, 3

local open_other, admits_other, take_other, save_log
if others then
  s3 = {}
  local logs = {}

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
  -- with its instant and the units taken up to and with it. `first` is where the window begins.
  local function entry(i, place)
    local value = call('LINDEX', KEYS[i], place)
    if not value or #value ~= 13 then
      logs[i].is_broken = true
      return 0, 0
    end
    return read('>I7I6', value)
  end

  -- The first place in first..last whose entry passes; last + 1 if none does. Passing is monotone.
  local function first_place(i, first, last, passes)
    while first <= last do
      local middle = math.floor((first + last) / 2)
      if passes(entry(i, middle)) then last = middle - 1 else first = middle + 1 end
    end
    return first
  end

  local function empty_log(i, window, is_broken)
    local log = {base = 0, first = 1, last = 0, at = now, oldest = 0, newest = -1, window = window}
    logs[i] = log
    -- Units in the window, and of its oldest entry.
    s1[i], s2[i], s3[i] = 0, 0, 0
    log.is_broken = is_broken
    return log
  end

  local function open_log(i, window)
    local log = empty_log(i, window)
    local size = redis.pcall('LLEN', KEYS[i])
    if size == 0 then return end
    local left, newest = redis.pcall('LINDEX', KEYS[i], 0), redis.pcall('LINDEX', KEYS[i], -1)
    if size == 1 or #left ~= 13 or #newest ~= 13 then
      -- Another type's, or not a log: `#` of an error is 0.
      log.is_broken = true
      return
    end
    log.last = size - 1
    local base, sum
    left, base = read('>I7I6', left)
    newest, sum = read('>I7I6', newest)
    if sum < base or newest > now + YEAR then return empty_log(i, window, true) end
    log.at = math.max(now, newest, left + window)
    log.newest, log.base = newest, base
    log.is_stale = not keep_ms and newest + window + 1000000 < now
    local horizon = log.at - window
    if newest <= horizon then
      log.first, log.base = size, sum
      return
    end
    local oldest, after = entry(i, 1)
    if oldest <= horizon then
      log.first = first_place(i, 2, log.last, function(instant) return instant > horizon end)
      local _, gone = entry(i, log.first - 1)
      log.base = gone
      oldest, after = entry(i, log.first)
    end
    s1[i], log.oldest, s3[i] = sum - log.base, oldest, after - log.base
    if log.is_broken or s1[i] < 0 or s3[i] < 0 then return empty_log(i, window, true) end
  end

  -- How long until `units` more than what is free have left a log.
  local function log_wait(i, units)
    local log = logs[i]
    if units <= s3[i] then return math.max(0, log.oldest + log.window - log.at) end
    local place = first_place(i, log.first, log.last, function(_, sum) return sum - log.base >= units end)
    if place > log.last then return log.window end
    local instant = entry(i, place)
    return math.max(0, instant + log.window - log.at)
  end

  -- Reads a counter; false if a calendar period for this instant was not given.
  function open_other(i, r)
    local kind, value = kinds[r], values[i]
    if kind == LOG then
      open_log(i, lengths[r])
      return true
    end
    local one, two, three = 0, 0, 0
    if value then
      if #value == 24 then one, two, three = read('>ddd', value) end
      local is_whole = one % 1 == 0 and two % 1 == 0 and three % 1 == 0
      local is_state = is_whole and one >= 0 and two >= 0 and three >= 0 and math.max(one, two, three) < LATEST
      local begins = kind == COUNTER and one * lengths[r] or one
      if #value ~= 24 or not is_state or begins > now + YEAR then
        one, two, three = 0, 0, 0
        broken = broken or {}
        broken[i] = true
      end
    end
    if kind == COUNTER then
      -- The window's number, units in the one before, units in it.
      local window = lengths[r]
      local current = (now - now % window) / window
      if one < current then
        if one > 0 and not keep_ms and (one + 2) * window + 1000000 < now then
          broken = broken or {}
          broken[i] = true
        end
        one, two, three = current, one + 1 == current and three or 0, 0
      else
        stands[i] = true
      end
    else
      -- Begin and end of the period, units in it.
      if now < two then
        stands[i] = true
      else
        if two > 0 and not keep_ms and two + 1000000 < now then
          broken = broken or {}
          broken[i] = true
        end
        local period = others[r]
        if now < period[1] or now >= period[3] then return false end
        if now < period[2] then one, two = period[1], period[2] else one, two = period[2], period[3] end
        three = 0
      end
    end
    s1[i], s2[i], s3[i] = one, two, three
    return true
  end

  -- Says what a charge finds, and whether it is admitted.
  function admits_other(i, r, request)
    local kind, a, b = kinds[r], costs[r], quotas[r]
    local n = filled
    if kind == LOG then
      local log, used = logs[i], s1[i]
      if log.request ~= request then log.request, log.before = request, used end
      reply[n + 1], reply[n + 2], reply[n + 3], reply[n + 4], reply[n + 5], reply[n + 6] =
        used, log.oldest, log.at, 0, 0, 0
      filled = n + 6
      if a > b - used and a <= b and a > 0 then reply[n + 4] = log_wait(i, used + a - b) end
      if used > b and b > 0 then reply[n + 5] = log_wait(i, used + 1 - b) end
      if log.before > b and b > 0 then reply[n + 6] = log_wait(i, log.before + 1 - b) end
      return a == 0 or a <= b - used
    end
    local used = s3[i]
    reply[n + 1], reply[n + 2], reply[n + 3] = s1[i], s2[i], used
    filled = n + 3
    if a == 0 then return true end
    if kind == CALENDAR then return a <= b - used end
    local free, before, window = b - used - a, s2[i], lengths[r]
    if free < 0 then return false end
    if before <= free then return true end
    return product_at_most(before, window - math.max(0, now - s1[i] * window), free, window)
  end

  function take_other(i, r)
    if kinds[r] == LOG then
      local log = logs[i]
      if s1[i] == 0 then log.oldest, s3[i] = log.at, 0 end
      if log.oldest == log.at then s3[i] = s3[i] + costs[r] end
      s1[i] = s1[i] + costs[r]
    else
      s3[i] = s3[i] + costs[r]
    end
  end

  function save_log(i)
    local log, key, window = logs[i], KEYS[i], logs[i].window
    if log.is_broken then call('DEL', key) end
    if log.is_broken or log.is_stale then mended = mended + 1 end
    local sum = log.base + s1[i]
    if log.newest == log.at and log.first <= log.last then
      call('LSET', key, -1, write('>I7I6', log.at, sum))
    else
      if log.last == 0 then call('RPUSH', key, write('>I7I6', math.max(0, log.at - window), log.base)) end
      call('RPUSH', key, write('>I7I6', log.at, sum))
    end
    if log.first > 1 then call('LPOP', key, log.first - 1) end
    if keep_ms then
      call('PEXPIRE', key, keep_ms)
    else
      call('PEXPIREAT', key, math.ceil((log.at + window) / 1000))
    end
  end
end

-- What to give back if a request of several is refused.
local takes, undo = 0, requests > 1 and {} or nil
local admitted, bit, refused = 0, 1, false

for place = at, #blob, 5 do
  local flags, r1, r2, k1, k2 = byte(blob, place, place + 4)
  local r, i = r1 * 256 + r2, k1 * 256 + k2
  local kind, a, b = kinds[r], costs[r], quotas[r]
  local admits
  if kind == FIXED then
    local used = s2[i]
    if not used then
      local length, value = lengths[r], values[i]
      local window = (now - now % length) / length
      used = 0
      if value then
        local stored, units = -1, 0
        if #value == 8 then stored, units = read('>I4I4', value) end
        if stored == window or (stored > window and stored * length < now + YEAR) then
          window, used, stands[i] = stored, units, true
        elseif stored < 0 or stored > window or not keep_ms and (stored + 1) * length + 1000000 < now then
          -- What outlived its window by a second had no expiry; the next write gives it one.
          broken = broken or {}
          broken[i] = true
        end
      end
      s1[i], s2[i] = window, used
    end
    reply[filled + 1], reply[filled + 2] = s1[i], used
    filled = filled + 2
    admits = a <= b - used or a == 0
  elseif kind == BUCKET then
    local full_at = s1[i]
    if not full_at then
      local value = values[i]
      full_at, s2[i] = now, 0
      if value then
        local kept_until, stored, part = -1, 0, 0
        if #value == 18 then kept_until, stored, part = read('>ddI2', value) end
        if stored % 1 == 0 and kept_until % 1 == 0 and stored >= 0 and stored <= kept_until and
          kept_until < LATEST and part < lengths[r] and (keep_ms or kept_until + 1000000 >= now) then
          if stored >= now then full_at, s2[i] = stored, part end
          if kept_until > now then stands[i] = kept_until end
        else
          broken = broken or {}
          broken[i] = true
        end
      end
      s1[i] = full_at
    end
    reply[filled + 1], reply[filled + 2] = full_at, s2[i]
    filled = filled + 2
    local wanted, part = full_at - now + a, s2[i] + ticks[r]
    if part >= lengths[r] then wanted, part = wanted + 1, part - lengths[r] end
    admits = wanted < b or (wanted == b and part <= tick_quotas[r]) or (a == 0 and ticks[r] == 0)
  else
    if not s1[i] and not open_other(i, r) then return {-1, now} end
    admits = admits_other(i, r, bit)
  end

  local is_last = flags >= LAST
  if is_last then flags = flags - LAST end
  if admits then
    if flags % 2 == TAKE and (a > 0 or (ticks and ticks[r] and ticks[r] > 0)) then
      -- Taken for the charges that come after it.
      if undo then
        undo[takes + 1], undo[takes + 2], undo[takes + 3], undo[takes + 4], undo[takes + 5] =
          i, s1[i], s2[i], s3 and s3[i] or 0, changed[i] or 0
        takes = takes + 5
      end
      if kind == FIXED then
        s2[i] = s2[i] + a
      elseif kind == BUCKET then
        local full_at, part = s1[i] + a, s2[i] + ticks[r]
        if part >= lengths[r] then full_at, part = full_at + 1, part - lengths[r] end
        s1[i], s2[i] = full_at, part
      else
        take_other(i, r)
      end
      changed[i] = r
    end
  elseif flags >= ENFORCE then
    refused = true
  end
  if is_last then
    if not refused then
      admitted = admitted + bit
    elseif undo then
      for t = takes - 4, 1, -5 do
        local j = undo[t]
        s1[j], s2[j] = undo[t + 1], undo[t + 2]
        if s3 and s3[j] then s3[j] = undo[t + 3] end
        changed[j] = undo[t + 4] > 0 and undo[t + 4] or nil
      end
    end
    takes, refused, bit = 0, false, bit * 2
  end
end

if admitted > 0 then
  -- Limits of one window end together, and writing a number costs as much as the call.
  local written, text
  for i = 1, #KEYS do
    local r = changed[i]
    if r then
      local kind, key = kinds[r], KEYS[i]
      local place, part, value, ends
      if kind == FIXED then
        place, part = 4, write('>I4', s2[i])
        if not stands[i] then value, ends = write('>I4', s1[i]), (s1[i] + 1) * lengths[r] end
      elseif kind == BUCKET then
        -- Full again a little later each time: it is kept for a refill longer than it must be, so that its
        -- expiry has to be moved once in a refill only.
        place, part = 8, write('>dI2', s1[i], s2[i])
        if not stands[i] or s1[i] >= stands[i] then
          ends = s1[i] + quotas[r] + 1
          value = write('>d', ends)
        end
      elseif kind == LOG then
        save_log(i)
      else
        place, part = 16, write('>d', s3[i])
        if not stands[i] then
          value, ends = write('>dd', s1[i], s2[i]), kind == COUNTER and (s1[i] + 2) * lengths[r] or s2[i]
        end
      end
      if value then
        if broken and broken[i] then mended = mended + 1 end
        if not values[i] and call('EXISTS', key) == 1 then mended = mended + 1 end
        if ends ~= written then
          written, text = ends, string.format('%.0f', (ends + 999 - (ends + 999) % 1000) / 1000)
        end
        call('SET', key, value .. part, keep_ms and 'PX' or 'PXAT', keep_ms or text)
      elseif part then
        -- In a window that goes on: the expiry stands.
        call('SETRANGE', key, place, part)
      end
    end
  end
end

reply[2], reply[3] = mended, admitted
return reply
