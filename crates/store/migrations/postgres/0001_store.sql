-- Never edited once it was released: a change is another file with the next number.
-- Keys and times are compared by their bytes, as SQLite does.
-- Times are text, UTC, of one width, so that they sort. Booleans are 1 and 0.

create table traces (
    trace_id text collate "C" primary key,
    source text not null,
    name text,
    session_id text,
    model text,
    started_at text collate "C",
    -- When it began, or when it came where nobody says; and that day.
    began_at text collate "C" not null,
    day text collate "C" not null,
    duration_ms bigint,
    steps bigint not null,
    tool_calls bigint not null,
    errors bigint not null,
    -- A JSON list of names, each once.
    tools text not null,
    input_tokens bigint,
    output_tokens bigint,
    cost_usd double precision,
    input_preview text not null,
    output_preview text not null,
    -- Name and previews in small letters.
    search_text text not null,
    -- What people say of it together: positive, negative, neutral, or null. Kept beside the feedback that it comes from.
    rating text collate "C" check (rating in ('positive', 'negative', 'neutral')),
    hash text collate "C" not null,
    raw_hash text not null,
    imported_at text collate "C" not null,
    changed_at text collate "C" not null
);

create index traces_newest on traces (began_at desc, trace_id);

-- Zstandard. Apart from the columns, so that going over those reads no payload.
create table trace_payloads (
    trace_id text collate "C" primary key references traces (trace_id),
    document bytea not null,
    -- Null: the document's own text.
    raw bytea
);

create table trace_tools (
    tool text collate "C" not null,
    trace_id text collate "C" not null references traces (trace_id),
    primary key (tool, trace_id)
);

create index trace_tools_of_trace on trace_tools (trace_id);

create table evals (
    eval_id text collate "C" primary key,
    newest_version bigint not null,
    created_at text collate "C" not null
);

create table eval_versions (
    eval_id text collate "C" not null references evals (eval_id),
    version bigint not null,
    code text not null,
    code_hash text not null,
    guest_hash text not null,
    note text,
    created_at text collate "C" not null,
    primary key (eval_id, version)
);

create table eval_executions (
    eval_id text collate "C" not null,
    trace_id text collate "C" not null references traces (trace_id),
    result smallint check (result in (0, 1)),
    reason text,
    execution_time_ms bigint not null,
    error text,
    stdout text not null,
    stderr text not null,
    id text not null,
    eval_version bigint not null,
    trace_hash text not null,
    code_hash text not null,
    guest_hash text,
    error_kind text,
    executed_at text collate "C" not null,
    -- The trace's, kept here too so that comparing needs no other table.
    day text collate "C" not null,
    rating text collate "C",
    -- 0: none; 1: the verdict and the rating contradict each other; 2: and somebody decided who is wrong.
    contradiction smallint not null check (contradiction in (0, 1, 2)),
    -- 1: the trace has another document by now, so that this is said of nothing that is there; it is compared no more.
    is_stale smallint not null check (is_stale in (0, 1)),
    primary key (eval_id, eval_version, trace_id),
    foreign key (eval_id, eval_version) references eval_versions (eval_id, version)
);

create index eval_executions_of_trace on eval_executions (trace_id);

create index eval_executions_open on eval_executions (eval_id, eval_version, executed_at desc, trace_id)
where contradiction = 1;

create index eval_executions_resolved on eval_executions (eval_id, eval_version, executed_at desc, trace_id)
where contradiction = 2;

-- How many executions there are of each kind, kept by the triggers below. The verdict of stale ones is 'stale'.
create table eval_counts (
    eval_id text collate "C" not null,
    eval_version bigint not null,
    day text collate "C" not null,
    verdict text collate "C" not null,
    rating text collate "C" not null,
    contradiction smallint not null,
    executions bigint not null,
    primary key (eval_id, eval_version, day, verdict, rating, contradiction)
);

create table feedback (
    id bigint generated always as identity primary key,
    trace_id text collate "C" not null references traces (trace_id),
    author text collate "C" not null,
    -- Null: the author takes back what they said before.
    rating text collate "C" check (rating in ('positive', 'negative', 'neutral')),
    note text,
    source text not null,
    created_at text collate "C" not null,
    -- Of all that is said, so that the same is kept once.
    hash text collate "C" not null unique
);

create index feedback_of_trace on feedback (trace_id, author, created_at, id);
create index feedback_newest on feedback (created_at desc, id desc);

-- What people say of the traces that several of them rated: who says what as JSON, and of how many traces. Kept beside the
-- feedback that it comes from. Names may be longer than what an index can hold: the key is a hash.
create table rating_patterns (
    hash text collate "C" primary key,
    ratings text not null,
    traces bigint not null
);

create table contradiction_resolutions (
    id bigint generated always as identity primary key,
    eval_id text collate "C" not null,
    eval_version bigint not null,
    trace_id text collate "C" not null references traces (trace_id),
    -- The document, the verdict and the rating that were decided about.
    trace_hash text not null,
    result smallint not null check (result in (0, 1)),
    rating text collate "C" not null,
    resolution text not null check (resolution in ('eval-wrong', 'label-wrong', 'dismissed')),
    note text,
    author text collate "C" not null,
    resolved_at text collate "C" not null,
    foreign key (eval_id, eval_version) references eval_versions (eval_id, version)
);

create index contradiction_resolutions_of on contradiction_resolutions (eval_id, trace_id, result, rating, id);

create table runs (
    run_id text collate "C" primary key,
    started_at text collate "C" not null,
    ended_at text collate "C",
    -- A JSON list of names.
    agents text not null,
    suites bigint not null,
    cases bigint not null,
    passed bigint not null,
    failed bigint not null,
    errored bigint not null,
    interrupted smallint not null
);

create index runs_newest on runs (started_at desc, run_id desc);

create table run_cases (
    id bigint generated always as identity primary key,
    run_id text collate "C" not null references runs (run_id),
    -- From 1, in the order of the run: one file may be asked of several agents, and two agents may have one name.
    suite bigint not null,
    -- From 1, in the order of the file.
    place bigint not null,
    eval_file text collate "C" not null,
    tool_name text not null,
    tier text not null,
    agent text collate "C" not null,
    case_id text collate "C" not null,
    trial bigint not null,
    outcome text not null check (outcome in ('passed', 'failed', 'errored')),
    error text,
    duration_ms bigint not null,
    trace_id text collate "C" references traces (trace_id),
    -- Numbers only: names may be longer than what an index can hold.
    unique (run_id, suite, place, trial)
);

create function refuse_change() returns trigger language plpgsql as $$
begin
    raise exception 'a row of % never changes: add another one', tg_table_name;
end
$$;

create trigger eval_versions_stay before update or delete on eval_versions
for each row execute function refuse_change();
create trigger eval_versions_remain before truncate on eval_versions
for each statement execute function refuse_change();

create trigger feedback_stays before update or delete on feedback
for each row execute function refuse_change();
create trigger feedback_remains before truncate on feedback
for each statement execute function refuse_change();

create function count_added_executions() returns trigger language plpgsql as $$
begin
    insert into eval_counts (eval_id, eval_version, day, verdict, rating, contradiction, executions)
    select
        eval_id, eval_version, day,
        case
            when is_stale = 1 then 'stale' when result = 1 then 'passed' when result = 0 then 'failed'
            else 'errored'
        end,
        coalesce(rating, 'none'), contradiction, count(*)
    from added group by 1, 2, 3, 4, 5, 6
    on conflict (eval_id, eval_version, day, verdict, rating, contradiction)
    do update set executions = eval_counts.executions + excluded.executions;
    return null;
end
$$;

create function count_removed_executions() returns trigger language plpgsql as $$
begin
    insert into eval_counts (eval_id, eval_version, day, verdict, rating, contradiction, executions)
    select
        eval_id, eval_version, day,
        case
            when is_stale = 1 then 'stale' when result = 1 then 'passed' when result = 0 then 'failed'
            else 'errored'
        end,
        coalesce(rating, 'none'), contradiction, -count(*)
    from removed group by 1, 2, 3, 4, 5, 6
    on conflict (eval_id, eval_version, day, verdict, rating, contradiction)
    do update set executions = eval_counts.executions + excluded.executions;
    return null;
end
$$;

create trigger eval_executions_added after insert on eval_executions
referencing new table as added for each statement execute function count_added_executions();
create trigger eval_executions_removed after delete on eval_executions
referencing old table as removed for each statement execute function count_removed_executions();
create trigger eval_executions_changed_away after update on eval_executions
referencing old table as removed for each statement execute function count_removed_executions();
create trigger eval_executions_changed_to after update on eval_executions
referencing new table as added for each statement execute function count_added_executions();

-- What evals say beside what people say; the newest version of each eval is meant, and each trace as it is now.
create view eval_comparison as
select
    e.eval_id as eval_id,
    e.trace_id as trace_id,
    e.result as result,
    e.rating as rating,
    case when e.contradiction > 0 then 1 else 0 end as is_contradiction,
    e.executed_at as executed_at
from eval_executions e
join evals v on v.eval_id = e.eval_id and v.newest_version = e.eval_version
where e.is_stale = 0;
