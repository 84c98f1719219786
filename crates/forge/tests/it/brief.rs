//! The brief for drafting cases.

use karat_cases::Difficulty;
use karat_forge::{BriefDocument, Plan, labeled_slots};

use crate::drafts::brief;

#[test]
fn straightforward_slots_have_a_tool_count() {
    let brief = brief();
    let plan = Plan::new(&brief);
    let document = BriefDocument::new(&brief, &plan, &labeled_slots(&brief, &plan));
    for slot in &document.slots {
        let is_straightforward = slot.difficulty == Some(Difficulty::Straightforward);
        assert_eq!(slot.tool_count.is_some(), is_straightforward, "{slot:?}");
        assert_eq!(slot.task.contains("toolCount"), is_straightforward, "{slot:?}");
    }
    assert!(document.to_string().contains(" tools: get_weather toolCount: 2\n"), "{document}");
}
