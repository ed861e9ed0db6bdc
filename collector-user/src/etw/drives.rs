//! What paths of the kernel begin with on this machine in, what of that holds for a trace that may be of another one out.

use std::collections::HashSet;
use std::path::Path;

use windows_etw::decode::state::{ImageLife, NtPaths};

use super::modules::key;
use crate::image_places::open_at;

/// Images that are looked for on each volume.
const MOST: usize = 1 << 12;

/// Adds those volumes of which an image is here, by its date and size, that the trace itself has no drive for.
pub(super) fn learn_drives(paths: &mut NtPaths, volumes: &[(String, String)], images: &[ImageLife]) {
    if volumes.is_empty() {
        return;
    }
    let mut met = HashSet::new();
    let unknown = images
        .iter()
        .filter(|image| met.insert(&*image.path) && paths.to_dos(&image.path) == *image.path)
        .take(MOST);
    let unknown: Vec<&ImageLife> = unknown.collect();
    for (nt, dos) in volumes {
        let mut volume = NtPaths::default();
        volume.add(nt, dos);
        let is_here = |image: &&ImageLife| {
            let place = volume.to_dos(&image.path);
            let is_here = |key| open_at(Path::new(&*place), key).is_some();
            *place != *image.path && key(image).is_some_and(is_here)
        };
        if unknown.iter().any(is_here) {
            paths.add(nt, dos);
        }
    }
}
