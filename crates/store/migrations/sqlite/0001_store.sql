-- Never edited once it was released: a change is another file with the next number.
-- Times are text, UTC, of one width, so that they sort. Booleans are 1 and 0.

create table traces (
    trace_id text primary key not null,
    source text not null,
    name text,
    session_id text,
    model text,
    started_at text,
    -- When it began, or when it came where nobody says; and that day.
    began_at text not null,
    day text not null,
    duration_ms integer,
    steps integer not null,
    tool_calls integer not null,
    errors integer not null,
    -- A JSON list of names, each once.
    tools text not null,
    input_tokens integer,
    output_tokens integer,
    cost_usd real,
    input_preview text not null,
    output_preview text not null,
    -- Name and previews in small letters.
    search_text text not null,
    -- What people say of it together: positive, negative, neutral, or null. Kept beside the feedback that it comes from.
    rating text check (rating in ('positive', 'negative', 'neutral')),
    hash text not null,
    raw_hash text not null,
    imported_at text not null,
    changed_at text not null
) strict;

create index traces_newest on traces (began_at desc, trace_id);

-- Zstandard. Apart from the columns, so that going over those reads no payload.
create table trace_payloads (
    trace_id text primary key not null references traces (trace_id),
    document blob not null,
    -- Null: the document's own text.
    raw blob
) strict;

create table trace_tools (
    tool text not null,
    trace_id text not null references traces (trace_id),
    primary key (tool, trace_id)
) strict, without rowid;

create index trace_tools_of_trace on trace_tools (trace_id);

create table evals (
    eval_id text primary key not null,
    newest_version integer not null,
    created_at text not null
) strict;

create table eval_versions (
    eval_id text not null references evals (eval_id),
    version integer not null,
    code text not null,
    code_hash text not null,
    guest_hash text not null,
    note text,
    created_at text not null,
    primary key (eval_id, version)
) strict;

create trigger eval_versions_stay before update on eval_versions
begin
    select raise(abort, 'a version of an eval never changes: add another one');
end;

create trigger eval_versions_remain before delete on eval_versions
begin
    select raise(abort, 'a version of an eval is never deleted');
end;

create table eval_executions (
    eval_id text not null,
    trace_id text not null references traces (trace_id),
    result integer check (result in (0, 1)),
    reason text,
    execution_time_ms integer not null,
    error text,
    stdout text not null,
    stderr text not null,
    id text not null,
    eval_version integer not null,
    trace_hash text not null,
    code_hash text not null,
    guest_hash text,
    error_kind text,
    executed_at text not null,
    -- The trace's, kept here too so that comparing needs no other table.
    day text not null,
    rating text,
    -- 0: none; 1: the verdict and the rating contradict each other; 2: and somebody decided who is wrong.
    contradiction integer not null check (contradiction in (0, 1, 2)),
    -- 1: the trace has another document by now, so that this is said of nothing that is there; it is compared no more.
    is_stale integer not null check (is_stale in (0, 1)),
    primary key (eval_id, eval_version, trace_id),
    foreign key (eval_id, eval_version) references eval_versions (eval_id, version)
) strict;

create index eval_executions_of_trace on eval_executions (trace_id);

create index eval_executions_open on eval_executions (eval_id, eval_version, executed_at desc, trace_id)
where contradiction = 1;

create index eval_executions_resolved on eval_executions (eval_id, eval_version, executed_at desc, trace_id)
where contradiction = 2;

-- How many executions there are of each kind, kept by the triggers below. The verdict of stale ones is 'stale'.
create table eval_counts (
    eval_id text not null,
    eval_version integer not null,
    day text not null,
    verdict text not null,
    rating text not null,
    contradiction integer not null,
    executions integer not null,
    primary key (eval_id, eval_version, day, verdict, rating, contradiction)
) strict, without rowid;

create trigger eval_executions_added after insert on eval_executions
begin
    insert into eval_counts (eval_id, eval_version, day, verdict, rating, contradiction, executions)
    values (
        new.eval_id, new.eval_version, new.day,
        case
            when new.is_stale = 1 then 'stale' when new.result = 1 then 'passed' when new.result = 0 then 'failed'
            else 'errored'
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
            else 'errored'
        end
        and rating = coalesce(old.rating, 'none') and contradiction = old.contradiction;
end;

create trigger eval_executions_changed after update of result, rating, contradiction, day, is_stale on eval_executions
when old.result is not new.result or old.rating is not new.rating
    or old.contradiction <> new.contradiction or old.day <> new.day or old.is_stale <> new.is_stale
begin
    update eval_counts set executions = executions - 1
    where eval_id = old.eval_id and eval_version = old.eval_version and day = old.day
        and verdict = case
            when old.is_stale = 1 then 'stale' when old.result = 1 then 'passed' when old.result = 0 then 'failed'
            else 'errored'
        end
        and rating = coalesce(old.rating, 'none') and contradiction = old.contradiction;
    insert into eval_counts (eval_id, eval_version, day, verdict, rating, contradiction, executions)
    values (
        new.eval_id, new.eval_version, new.day,
        case
            when new.is_stale = 1 then 'stale' when new.result = 1 then 'passed' when new.result = 0 then 'failed'
            else 'errored'
        end,
        coalesce(new.rating, 'none'), new.contradiction, 1
    )
    on conflict do update set executions = executions + 1;
end;

create table feedback (
    id integer primary key,
    trace_id text not null references traces (trace_id),
    author text not null,
    -- Null: the author takes back what they said before.
    rating text check (rating in ('positive', 'negative', 'neutral')),
    note text,
    source text not null,
    created_at text not null,
    -- Of all that is said, so that the same is kept once.
    hash text not null unique
) strict;

create index feedback_of_trace on feedback (trace_id, author, created_at, id);
create index feedback_newest on feedback (created_at desc, id desc);

create trigger feedback_stays before update on feedback
begin
    select raise(abort, 'what somebody said never changes: add another statement');
end;

create trigger feedback_remains before delete on feedback
begin
    select raise(abort, 'what somebody said is never deleted');
end;

-- What people say of the traces that several of them rated: who says what as JSON, and of how many traces. Kept beside the
-- feedback that it comes from. Names may be longer than what an index can hold: the key is a hash.
create table rating_patterns (
    hash text primary key not null,
    ratings text not null,
    traces integer not null
) strict;

create table contradiction_resolutions (
    id integer primary key,
    eval_id text not null,
    eval_version integer not null,
    trace_id text not null references traces (trace_id),
    -- The document, the verdict and the rating that were decided about.
    trace_hash text not null,
    result integer not null check (result in (0, 1)),
    rating text not null,
    resolution text not null check (resolution in ('eval-wrong', 'label-wrong', 'dismissed')),
    note text,
    author text not null,
    resolved_at text not null,
    foreign key (eval_id, eval_version) references eval_versions (eval_id, version)
) strict;

create index contradiction_resolutions_of on contradiction_resolutions (eval_id, trace_id, result, rating, id);

create table runs (
    run_id text primary key not null,
    started_at text not null,
    ended_at text,
    -- A JSON list of names.
    agents text not null,
    suites integer not null,
    cases integer not null,
    passed integer not null,
    failed integer not null,
    errored integer not null,
    interrupted integer not null
) strict;

create index runs_newest on runs (started_at desc, run_id desc);

create table run_cases (
    id integer primary key,
    run_id text not null references runs (run_id),
    -- From 1, in the order of the run: one file may be asked of several agents, and two agents may have one name.
    suite integer not null,
    -- From 1, in the order of the file.
    place integer not null,
    eval_file text not null,
    tool_name text not null,
    tier text not null,
    agent text not null,
    case_id text not null,
    trial integer not null,
    outcome text not null check (outcome in ('passed', 'failed', 'errored')),
    error text,
    duration_ms integer not null,
    trace_id text references traces (trace_id),
    -- Numbers only: names may be longer than what an index can hold.
    unique (run_id, suite, place, trial)
) strict;

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
