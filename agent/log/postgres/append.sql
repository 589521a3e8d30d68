-- Stores batches of events of several sessions at once, and tells the other processes.
WITH batches AS (
  SELECT * FROM unnest(%(sessions)s::text[], %(fences)s::integer[], %(afters)s::integer[],
    %(counts)s::integer[], %(questions)s::integer[], %(times)s::double precision[],
    %(clears)s::boolean[], %(ends)s::boolean[], %(news)s::text[])
    AS g(session, fence, after, count, questions, at, clears, ends, news)),
here AS (
  UPDATE sessions SET last_seq = last_seq + b.count, messages = messages + b.questions,
    updated = b.at
  FROM batches b WHERE id = b.session AND sessions.fence = coalesce(b.fence, sessions.fence)
    AND last_seq = coalesce(b.after, last_seq)
  RETURNING id, last_seq, b.count, b.at, b.clears, b.ends, b.news),
given AS (
  SELECT id, (last_seq - count + place)::integer AS seq, type, data, at, sum
  FROM here JOIN unnest(%(owners)s::text[], %(places)s::integer[], %(types)s::text[],
    %(texts)s::text[], %(sums)s::bigint[]) AS r(session, place, type, data, sum)
    ON r.session = id),
cleared AS (
  DELETE FROM deltas USING here WHERE clears AND session = id),
released AS (
  DELETE FROM runs USING here WHERE ends AND session = id),
stored AS (
  INSERT INTO events SELECT id, seq, type, data, at, (sum + seq) %% %(modulus)s FROM given
  WHERE type <> ALL (%(deltas)s::text[])),
passing AS (
  INSERT INTO deltas SELECT id, seq, type, data, at FROM given
  WHERE type = ANY (%(deltas)s::text[])),
told AS (
  SELECT pg_notify(%(channel)s, news || last_seq || '}') FROM here)
SELECT id, last_seq, (SELECT count(*) FROM told),
  set_config('synchronous_commit', %(waiting)s, true)
FROM here
