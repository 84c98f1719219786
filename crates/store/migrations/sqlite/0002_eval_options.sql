-- Options of eval functions, functions that are not applicable, and scores.

-- JSON: the modules, the threshold and the helper modules that the function uses beside the contract's form.
alter table eval_versions add column options text;

-- 0: the function has nothing to say about the trace; its result and its error are null.
alter table eval_executions add column applicable integer not null default 1 check (applicable in (0, 1));
alter table eval_executions add column score real;

drop trigger eval_executions_added;
drop trigger eval_executions_removed;
drop trigger eval_executions_changed;

create trigger eval_executions_added after insert on eval_executions
begin
    insert into eval_counts (eval_id, eval_version, day, verdict, rating, contradiction, executions)
    values (
        new.eval_id, new.eval_version, new.day,
        case
            when new.is_stale = 1 then 'stale' when new.result = 1 then 'passed' when new.result = 0 then 'failed'
            when new.applicable = 0 then 'not_applicable' else 'errored'
        end,
        coalesce(new.rating, 'none'), new.contradiction, 1
    )
    on conflict do update set executions = executions + 1;
end;

create trigger eval_executions_removed after delete on eval_executions
begin
    update eval_counts set executions = executions - 1
    where eval_id = old.eval_id and eval_version = old.eval_version and day = old.day
        and verdict = case
            when old.is_stale = 1 then 'stale' when old.result = 1 then 'passed' when old.result = 0 then 'failed'
            when old.applicable = 0 then 'not_applicable' else 'errored'
        end
        and rating = coalesce(old.rating, 'none') and contradiction = old.contradiction;
end;

create trigger eval_executions_changed
after update of result, applicable, rating, contradiction, day, is_stale on eval_executions
when old.result is not new.result or old.applicable <> new.applicable or old.rating is not new.rating
    or old.contradiction <> new.contradiction or old.day <> new.day or old.is_stale <> new.is_stale
begin
    update eval_counts set executions = executions - 1
    where eval_id = old.eval_id and eval_version = old.eval_version and day = old.day
        and verdict = case
            when old.is_stale = 1 then 'stale' when old.result = 1 then 'passed' when old.result = 0 then 'failed'
            when old.applicable = 0 then 'not_applicable' else 'errored'
        end
        and rating = coalesce(old.rating, 'none') and contradiction = old.contradiction;
    insert into eval_counts (eval_id, eval_version, day, verdict, rating, contradiction, executions)
    values (
        new.eval_id, new.eval_version, new.day,
        case
            when new.is_stale = 1 then 'stale' when new.result = 1 then 'passed' when new.result = 0 then 'failed'
            when new.applicable = 0 then 'not_applicable' else 'errored'
        end,
        coalesce(new.rating, 'none'), new.contradiction, 1
    )
    on conflict do update set executions = executions + 1;
end;
