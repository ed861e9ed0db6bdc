//! The class of a kernel event. In a buffer it has a hook id: a group and a type. Those who read a trace are told a GUID for
//! the group, and the type as the opcode.
//!
//! Source: the groups are `EVENT_TRACE_GROUP_*` of `ntwmi.h`, the GUIDs those of `evntrace.h` and, for groups that are not
//! published there, of Geoff Chappell's "Hook IDs For NT Kernel Logger Events".

use collector_common::event::Guid;

/// `EventTraceGuid`: what is told of the trace itself. The first record of a file has this class and opcode 0.
pub const EVENT_TRACE: Guid = Guid(0x68fd_d900_4a3e_11d1_84f4_0000_f804_64e3_u128.to_be_bytes());

/// Group and type of images that a process loads, of the group of processes, though its class is that of images.
const PROCESS_LOAD_IMAGE: (u8, u8) = (3, 10);
const IMAGE: u8 = 0x14;

/// By group.
const CLASSES: [u128; 31] = [
    0x68fd_d900_4a3e_11d1_84f4_0000_f804_64e3, // EventTrace
    0x3d6f_a8d4_fe05_11d0_9dda_00c0_4fd7_ba7c, // DiskIo
    0x3d6f_a8d3_fe05_11d0_9dda_00c0_4fd7_ba7c, // PageFault
    0x3d6f_a8d0_fe05_11d0_9dda_00c0_4fd7_ba7c, // Process
    0x90cb_dc39_4a3e_11d1_84f4_0000_f804_64e3, // FileIo
    0x3d6f_a8d1_fe05_11d0_9dda_00c0_4fd7_ba7c, // Thread
    0x9a28_0ac0_c8e0_11d1_84e2_00c0_4fb9_98a2, // TcpIp
    0x3282_fc76_feed_498e_8aa7_e70f_459d_430e, // Job
    0xbf3a_50c5_a9c9_4988_a005_2df0_b7c8_0f80, // UdpIp
    0xae53_722e_c863_11d2_8659_00c0_4fa3_21a1, // Registry
    0x1397_6d09_a327_438c_950b_7f03_1928_15c7, // DbgPrint
    0x0185_3a65_418f_4f36_aefc_dc0f_1d2f_d235, // EventTraceConfig
    0x9913_4383_5248_43fc_834b_5294_54e7_5df3, // EventTraceSpare1
    0x4269_5762_ea50_497a_9068_5cbb_b35e_0b95, // Wnf
    0x0268_a8b6_74fd_4302_9dd0_6e8f_1795_c0cf, // Pool
    0xce1d_bfb4_137e_4da6_87b0_3f59_aa10_2cbc, // PerfInfo
    0x2229_62ab_6180_4b88_a825_346b_75f2_a24a, // Heap
    0x8949_7f50_effe_4440_8cf2_ce6b_1cdc_aca7, // Object
    0xe434_45e0_0903_48c3_b878_ff0f_cceb_dd04, // Power
    0xa915_2f00_3f58_4bee_92a1_70c7_d079_d5dd, // ModBound
    0x2cb1_5d1d_5fc1_11d2_abe1_00a0_c911_f518, // Image
    0xb2d1_4872_7c5b_463d_8419_ee9b_f7d2_3e04, // Dpc
    0x7687_a439_f752_45b8_b741_321a_ec0f_8df9, // Cc
    0x3ac6_6736_cc59_4cff_8115_8df5_0e39_816b, // CritSec
    0xdef2_fe46_7bd6_4b80_bd94_f57f_e20d_0ce3, // StackWalk
    0x9aec_974b_5b8e_4118_9b92_3186_d800_2ce5, // Ums
    0x45d8_cccd_539f_4b72_a8b7_5c68_3142_609a, // Alpc
    0xd837_ca92_12b9_44a5_ad6a_3a65_b357_8aa8, // SplitIo
    0xc861_d0e2_a2c1_4d36_9f9c_970b_ab94_3a12, // ThreadPool
    0x7f2a_405c_69b5_4bf9_a1f5_30e8_f1af_ab5e, // Hypervisor
    0x2ce9_a149_effe_42f0_a635_a1d3_9e26_c8f2, // HypervisorX
];

/// The class of a group; zero of a group that is not known.
pub(super) fn class(group: u8, kind: u8) -> Guid {
    let group = if (group, kind) == PROCESS_LOAD_IMAGE { IMAGE } else { group };
    Guid(CLASSES.get(usize::from(group)).map_or([0; 16], |class| class.to_be_bytes()))
}

#[cfg(test)]
mod tests {
    use super::{EVENT_TRACE, class};

    #[test]
    fn classes_as_microsoft_prints_them() {
        // "NT Kernel Logger Constants", in the order of the groups.
        let published = [
            (0x01, "3d6fa8d4-fe05-11d0-9dda-00c04fd7ba7c"),
            (0x02, "3d6fa8d3-fe05-11d0-9dda-00c04fd7ba7c"),
            (0x03, "3d6fa8d0-fe05-11d0-9dda-00c04fd7ba7c"),
            (0x04, "90cbdc39-4a3e-11d1-84f4-0000f80464e3"),
            (0x05, "3d6fa8d1-fe05-11d0-9dda-00c04fd7ba7c"),
            (0x06, "9a280ac0-c8e0-11d1-84e2-00c04fb998a2"),
            (0x08, "bf3a50c5-a9c9-4988-a005-2df0b7c80f80"),
            (0x09, "ae53722e-c863-11d2-8659-00c04fa321a1"),
            (0x0b, "01853a65-418f-4f36-aefc-dc0f1d2fd235"),
            (0x0f, "ce1dbfb4-137e-4da6-87b0-3f59aa102cbc"),
            (0x14, "2cb15d1d-5fc1-11d2-abe1-00a0c911f518"),
            (0x18, "def2fe46-7bd6-4b80-bd94-f57fe20d0ce3"),
            (0x1a, "45d8cccd-539f-4b72-a8b7-5c683142609a"),
            (0x1b, "d837ca92-12b9-44a5-ad6a-3a65b3578aa8"),
        ];
        for (group, guid) in published {
            assert_eq!(class(group, 1).to_string(), guid);
        }
        assert_eq!(class(0, 0), EVENT_TRACE);
        assert_eq!(class(3, 10), class(0x14, 10), "an image that is loaded");
        assert_eq!(class(0x1f, 1).0, [0; 16]);
        assert_eq!(class(0xff, 1).0, [0; 16]);
    }
}
