#!lua
-- Forgets a counter. Returns the instant (ARGV[1], or this server's clock if that is '') and what was
-- there: a value, or the newest entry of a log.
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end
local value = redis.pcall('GET', KEYS[1])
if type(value) == 'table' then value = redis.pcall('LINDEX', KEYS[1], -1) end
redis.call('DEL', KEYS[1])
return {now, type(value) == 'string' and value or false}
