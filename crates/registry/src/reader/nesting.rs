//! Rejects sources that would overflow the stack of a recursive parser.

/// Python itself accepts 200 nested brackets.
pub(super) const MAX_DEPTH: usize = 1_000;

/// Returns the nesting depth of brackets, as an upper bound: brackets in comments and strings are counted too.
pub(super) fn bracket_depth(text: &str) -> usize {
    let (mut depth, mut max_depth) = (0_usize, 0);
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' | b'{' => {
                depth += 1;
                max_depth = max_depth.max(depth);
            }
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    max_depth
}
