//! What somebody reads who drafts cases.

use karat_core::case::Difficulty;
use karat_forge::{BriefDocument, Plan, labeled_slots};

use crate::drafts::brief;

#[test]
fn straightforward_slots_give_the_number_of_tools() {
    let brief = brief();
    let plan = Plan::of(&brief);
    let document = BriefDocument::of(&brief, &plan, &labeled_slots(&brief, &plan));
    for slot in &document.slots {
        let is_straightforward = slot.difficulty == Some(Difficulty::Straightforward);
        assert_eq!(slot.tool_count.is_some(), is_straightforward, "{slot:?}");
        assert_eq!(slot.task.contains("toolCount"), is_straightforward, "{slot:?}");
    }
    assert!(document.to_string().contains(" tools: get_weather toolCount: 2\n"), "{document}");
}
