-- Appends to a list only if no newer term of the lease was seen. Terms have 18 digits, so they compare as text;
-- Lua's numbers would be inexact beyond 2^53.
--   EVAL SCRIPT 2 term:shop/operator journal 000000000000000247 ENTRY
local known = redis.call('GET', KEYS[1])
if known and known > ARGV[1] then
  return redis.error_reply('TERM ' .. ARGV[1] .. ' has ended, known is ' .. known)
end
redis.call('SET', KEYS[1], ARGV[1])
return redis.call('RPUSH', KEYS[2], ARGV[2])
