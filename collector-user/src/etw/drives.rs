//! What paths of the kernel begin with on this machine in, what of that holds for a trace that may be of another one out.

use std::collections::HashSet;
use std::path::Path;

use collector_common::record::ImageHeader;
use windows_etw::decode::state::{ImageLife, NtPaths};

use super::modules::header;
use crate::image_places::open_at;

/// Images that are looked for on each volume.
const MOST: usize = 1 << 12;

/// Adds those volumes of which an image is here, by its date and size or its checksum and size, that the trace itself has no drive for.
pub(super) fn learn_drives(paths: &mut NtPaths, volumes: &[(String, String)], images: &[ImageLife]) {
    if volumes.is_empty() {
        return;
    }
    let mut met = HashSet::new();
    let unknown = images
        .iter()
        .filter_map(|image| Some((&*image.path, header(image)?)))
        .filter(|image| met.insert(*image))
        .filter(|(path, told)| !matches!(told, ImageHeader::Sized(_)) && paths.to_dos(path) == *path)
        .take(MOST);
    let unknown: Vec<(&str, ImageHeader)> = unknown.collect();
    for (nt, dos) in volumes {
        let mut volume = NtPaths::default();
        volume.add(nt, dos);
        let is_here = |(path, told): &(&str, ImageHeader)| {
            let place = volume.to_dos(path);
            place != *path && open_at(Path::new(&*place), *told).is_some()
        };
        if unknown.iter().any(is_here) {
            paths.add(nt, dos);
        }
    }
}
