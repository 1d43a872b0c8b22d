-- After a database came back from pg_dump or to a point in time, before any node starts: psql -v ON_ERROR_STOP=1 -f after-restore.sql
-- Fences, and the ids of work and of reads, were given out after that moment too. They jump above all of them, to the time in microseconds, which
-- no counter reaches by counting; what was held then is held by nobody. (`guildhall restore` does the same by itself.)
begin;
set local search_path to guildhall;
select setval('fences', greatest(nextval('fences'), now_ms() * 1000));
select setval(pg_get_serial_sequence('work', 'id'), now_ms() * 1000);
select setval(pg_get_serial_sequence('pool_reads', 'id'), now_ms() * 1000);
update work set fence = now_ms() * 1000 where fence < now_ms() * 1000;
update work set state = 'ready', owner = null, lease_until = null where state = 'running';
delete from claims;
delete from claim_waiters;
update mail set state = 'pending', leased_by = null, due_at = expires_at where state = 'leased';
delete from nodes;
commit;
