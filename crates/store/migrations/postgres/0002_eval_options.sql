-- Options of eval functions, functions that are not applicable, and scores.

-- JSON: the modules, the threshold and the helper modules that the function uses beside the contract's form.
alter table eval_versions add column options text;

-- 0: the function has nothing to say about the trace; its result and its error are null.
alter table eval_executions add column applicable smallint not null default 1 check (applicable in (0, 1));
alter table eval_executions add column score double precision;

create or replace function count_added_executions() returns trigger language plpgsql as $$
begin
    insert into eval_counts (eval_id, eval_version, day, verdict, rating, contradiction, executions)
    select
        eval_id, eval_version, day,
        case
            when is_stale = 1 then 'stale' when result = 1 then 'passed' when result = 0 then 'failed'
            when applicable = 0 then 'not_applicable' else 'errored'
        end,
        coalesce(rating, 'none'), contradiction, count(*)
    from added group by 1, 2, 3, 4, 5, 6
    on conflict (eval_id, eval_version, day, verdict, rating, contradiction)
    do update set executions = eval_counts.executions + excluded.executions;
    return null;
end
$$;

create or replace function count_removed_executions() returns trigger language plpgsql as $$
begin
    insert into eval_counts (eval_id, eval_version, day, verdict, rating, contradiction, executions)
    select
        eval_id, eval_version, day,
        case
            when is_stale = 1 then 'stale' when result = 1 then 'passed' when result = 0 then 'failed'
            when applicable = 0 then 'not_applicable' else 'errored'
        end,
        coalesce(rating, 'none'), contradiction, -count(*)
    from removed group by 1, 2, 3, 4, 5, 6
    on conflict (eval_id, eval_version, day, verdict, rating, contradiction)
    do update set executions = eval_counts.executions + excluded.executions;
    return null;
end
$$;
