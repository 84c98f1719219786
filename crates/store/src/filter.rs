//! SQL conditions for trace filters.

use karat_core::stored::TraceFilter;

use crate::statement::Statement;
use crate::text::{index_prefix, like_pattern, time};

/// Returns the condition after `where` for the table `traces` with the alias `t`.
pub(crate) fn condition(filter: &TraceFilter) -> Statement {
    let all = filter_condition(filter);
    let Some(limit) = filter.limit else { return all };
    let mut newest = Statement::new("t.trace_id in (select t.trace_id from traces t where ");
    newest.append(all);
    newest.push(" order by t.began_at desc, t.trace_id limit ?)");
    newest.add(limit);
    newest
}

/// Returns the condition without the filter's limit.
pub(crate) fn filter_condition(filter: &TraceFilter) -> Statement {
    let mut clause = Statement::new("1 = 1");
    if !filter.ids.is_empty() {
        clause.push(" and t.trace_id among ?");
        clause.add(filter.ids.clone());
    }
    if !filter.sources.is_empty() {
        clause.push(" and t.source among ?");
        clause.add(filter.sources.clone());
    }
    if let Some(source) = &filter.excluded_source {
        clause.push(" and t.source <> ?");
        clause.add(source);
    }
    if let Some(since) = filter.since {
        clause.push(" and t.began_at >= ?");
        clause.add(time(since));
    }
    if let Some(until) = filter.until {
        clause.push(" and t.began_at < ?");
        clause.add(time(until));
    }
    for tool in &filter.tools {
        clause.push(" and exists (select 1 from trace_tools c where c.tool = ? and c.trace_id = t.trace_id)");
        clause.add(index_prefix(tool));
    }
    if let Some(model) = &filter.model {
        clause.push(" and t.model = ?");
        clause.add(model);
    }
    if let Some(session) = &filter.session {
        clause.push(" and t.session_id = ?");
        clause.add(session);
    }
    if let Some(errors) = filter.errors {
        clause.push(if errors { " and t.errors > 0" } else { " and t.errors = 0" });
    }
    if let Some(rating) = filter.rating {
        clause.push(" and t.rating = ?");
        clause.add(rating.name());
    }
    if let Some(rated) = filter.rated {
        clause.push(if rated { " and t.rating is not null" } else { " and t.rating is null" });
    }
    if let Some(text) = &filter.text {
        clause.push(" and t.search_text like ? escape '\\'");
        clause.add(like_pattern(text));
    }
    clause
}
