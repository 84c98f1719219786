//! What comes of real exports, of each vocabulary, and of what is broken.

mod exports;
mod formats;
mod hostile;
mod joining;
mod spans;
mod vocabularies;
