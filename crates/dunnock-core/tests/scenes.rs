//! Scenes, written out.
