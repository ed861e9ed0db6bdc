//! Providers that are known by name. Names and GUIDs are those of the providers' manifests, as `logman query providers` lists them.

use collector_common::event::Guid;

use super::kernel::guid;

/// A provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownProvider {
    /// As its manifest has it.
    pub name: &'static str,
    /// What sessions enable.
    pub guid: Guid,
    /// What it tells.
    pub about: &'static str,
}

impl KnownProvider {
    /// .NET: garbage collector, JIT, loader, exceptions, locks.
    pub const CLR: Self = known(
        "Microsoft-Windows-DotNETRuntime",
        0xe13c_0d23_ccbc_4e12_931b_d9cc_2eee_27e4,
        ".NET: garbage collection, compiled methods, exceptions, locks",
    );
    /// .NET: what was loaded and compiled before a session.
    pub const CLR_RUNDOWN: Self = known(
        "Microsoft-Windows-DotNETRuntimeRundown",
        0xa669_021c_c450_4609_a035_5af5_9af4_df18,
        ".NET: what was compiled and loaded before",
    );

    /// The one of this name, in any case.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        KNOWN_PROVIDERS.iter().find(|known| known.name.eq_ignore_ascii_case(name))
    }

    /// The one with this GUID.
    pub fn by_guid(guid: Guid) -> Option<&'static Self> {
        KNOWN_PROVIDERS.iter().find(|known| known.guid == guid)
    }
}

const fn known(name: &'static str, digits: u128, about: &'static str) -> KnownProvider {
    KnownProvider { name, guid: guid(digits), about }
}

/// Those that can be named without asking Windows.
pub const KNOWN_PROVIDERS: [KnownProvider; 12] = [
    KnownProvider::CLR,
    KnownProvider::CLR_RUNDOWN,
    known(
        "Microsoft-Windows-DotNETRuntimePrivate",
        0x763f_d754_7086_4dfe_95eb_c01a_46fa_f4ca,
        ".NET: the garbage collector's and loader's own work",
    ),
    known(
        "System.Diagnostics.Eventing.FrameworkEventSource",
        0x8e9f_5090_2d75_4d03_8a81_e5af_bf85_daf1,
        ".NET Framework: thread pool, resources",
    ),
    known("System.Threading.Tasks.TplEventSource", 0x2e5d_ba47_a3d2_4d16_8ee0_6671_ffdc_d7b5, ".NET: tasks"),
    known(
        "Microsoft-Windows-Kernel-Process",
        0x22fb_2cd6_0e7b_422b_a0c7_2fad_1fd0_e716,
        "processes, threads, images",
    ),
    known("Microsoft-Windows-Kernel-File", 0xedd0_8927_9cc4_4e65_b970_c256_0fb5_c289, "operations on files"),
    known(
        "Microsoft-Windows-Kernel-Network",
        0x7dd4_2a49_5329_4832_8dfd_43d9_7915_3a88,
        "what TCP and UDP send and receive",
    ),
    known("Microsoft-Windows-Kernel-Disk", 0xc7bd_e69a_e1e0_4177_b6ef_283a_d152_5271, "requests to disks"),
    known(
        "Microsoft-Windows-Kernel-Memory",
        0xd1d9_3ef7_e1f2_4f45_9943_03d2_45fe_6c00,
        "memory of the system",
    ),
    known("Microsoft-Windows-DNS-Client", 0x1c95_126e_7eea_49a9_a3fe_a378_b03d_db4d, "look-ups of names"),
    known("Microsoft-Windows-TCPIP", 0x2f07_e2ee_15db_40f1_90ef_9d7b_a282_188a, "connections of TCP"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn providers_are_found_by_name_and_by_guid() {
        let clr = KnownProvider::by_name("microsoft-windows-dotnetruntime").unwrap();
        assert_eq!(clr.guid.to_string(), "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4");
        assert_eq!(KnownProvider::by_guid(clr.guid), Some(&KnownProvider::CLR));
        assert!(KnownProvider::by_name("Microsoft-Windows-DotNET").is_none());
    }

    #[test]
    fn no_name_and_no_guid_is_there_twice() {
        for (index, one) in KNOWN_PROVIDERS.iter().enumerate() {
            for other in &KNOWN_PROVIDERS[index + 1..] {
                assert!(one.guid != other.guid && !one.name.eq_ignore_ascii_case(other.name), "{}", one.name);
            }
        }
    }
}
