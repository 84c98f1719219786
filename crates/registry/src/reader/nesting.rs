//! Keeps sources away that a recursive parser would overflow its stack on.

/// The deepest nesting that is followed. Python itself accepts 200 brackets.
pub(super) const MAX_DEPTH: usize = 1_000;

/// Returns how deep brackets are nested in a text. Brackets in comments and strings count too: the result is too large
/// rather than too small.
pub(super) fn bracket_depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}
