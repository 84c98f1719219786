use karat_core::port::{Clock, Ids};
use karat_testkit::clock::FixedClock;
use karat_testkit::ids::FixedIds;

#[test]
fn fixed_clock_returns_the_same_time() {
    let clock = FixedClock::at("2026-05-06T07:08:09Z");
    assert_eq!(clock.now(), clock.now());
    assert_eq!(clock.now().to_string(), "2026-05-06T07:08:09Z");
}

#[test]
fn fixed_ids_increase() {
    let ids = FixedIds::new();
    assert_eq!(ids.run_id(), "00000000-0000-7000-8000-000000000001");
    assert_eq!(ids.run_id(), FixedIds::nth(2));
    assert_eq!(ids.run_id().len(), 36);
}
