//! Containers by the paths of their cgroups.
//!
//! No runtime tells the kernel what a container is called; all of them make a cgroup for each, and name it after the container's id of
//! 64 hexadecimal digits: as a folder of its own where the runtime makes cgroups itself, or as a scope of systemd's.
//!
//! | runtime | itself | by systemd |
//! |---|---|---|
//! | docker | `/docker/ID` | `/system.slice/docker-ID.scope` |
//! | containerd (nerdctl) | `/default/ID` | `/system.slice/nerdctl-ID.scope` |
//! | podman | `/libpod_parent/libpod-ID` | `/machine.slice/libpod-ID.scope`, with `/container` below it |
//! | Kubernetes | `/kubepods/burstable/podUID/ID` | `/kubepods.slice/.../cri-containerd-ID.scope`, `crio-ID.scope` |
//! | containerd's plug-in without systemd's slices | | `/system.slice/containerd.service/kubepods-burstable-podUID.slice:cri-containerd:ID` |
//!
//! `crio-conmon-ID.scope` and `libpod-conmon-ID.scope` are of what watches the container, outside of it. Of containers in containers the
//! innermost counts.

/// Digits of an id.
const DIGITS: usize = 64;

/// The id of the container that a cgroup is of.
pub(super) fn container_of(cgroup: &str) -> Option<&str> {
    cgroup.rsplit('/').find_map(id_of)
}

/// The id that a folder is named after.
fn id_of(folder: &str) -> Option<&str> {
    let unit = folder.strip_suffix(".scope").unwrap_or(folder);
    let (runtime, id) = unit.rsplit_once(['-', ':']).unwrap_or(("", unit));
    let is_id = id.len() == DIGITS && id.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    (is_id && !runtime.ends_with("conmon")).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    const POD: &str = "pod8f3a6e6e_9c5b_4a4e_b1f2_0a1b2c3d4e5f";

    #[test]
    fn each_runtime_names_the_cgroup_after_the_container() {
        let slices = format!("/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-{POD}.slice");
        let user = "/user.slice/user-1000.slice/user@1000.service/user.slice";
        for path in [
            format!("/docker/{ID}"),
            format!("/docker/{ID}/init.scope"),
            format!("/system.slice/docker-{ID}.scope"),
            format!("/system.slice/nerdctl-{ID}.scope"),
            format!("/default/{ID}"),
            format!("/machine.slice/libpod-{ID}.scope/container"),
            format!("{user}/libpod-{ID}.scope"),
            format!("/libpod_parent/libpod-{ID}"),
            format!("/kubepods/burstable/pod8f3a6e6e-9c5b-4a4e-b1f2-0a1b2c3d4e5f/{ID}"),
            format!("{slices}/cri-containerd-{ID}.scope"),
            format!("{slices}/crio-{ID}.scope"),
            format!("/system.slice/containerd.service/kubepods-burstable-{POD}.slice:cri-containerd:{ID}"),
            format!("/docker/{}/kubepods/burstable/{POD}/{ID}", "f".repeat(DIGITS)),
        ] {
            assert_eq!(container_of(&path), Some(ID), "{path}");
        }
    }

    #[test]
    fn other_cgroups_are_of_no_container() {
        for path in [
            "",
            "/",
            "/system.slice/docker.service",
            "/user.slice/user-1000.slice/session-2.scope",
            "/docker/0123456789ab",
            &format!("/machine.slice/libpod-conmon-{ID}.scope"),
            &format!("/system.slice/crio-conmon-{ID}.scope"),
            &format!("/docker/{ID}0"),
            &format!("/docker/{}", ID.to_uppercase()),
            &format!("/kubepods.slice/kubepods-{POD}.slice"),
        ] {
            assert_eq!(container_of(path), None, "{path}");
        }
    }
}
