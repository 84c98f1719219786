//! What comes of real exports, and of broken ones.

mod exports;
