/* The same rules in .eh_frame and in .debug_frame (GNU as, ".cfi_sections"). */
__asm__(".cfi_sections .eh_frame, .debug_frame");
