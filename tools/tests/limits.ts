/** A test that waits for what never comes is named after this time. Three times what the longest takes on a busy machine. */
export const TEST_BOUND_MS = 5 * 60_000

/** Longer than the slowest honest file on two busy cores; a file that spins, or leaks what keeps it alive, ends here. */
export const FILE_BOUND_MS = 10 * 60_000

/** What a unit test may leave behind for its process to end by itself: a socket that is closing, a timer that fires. */
export const LEAK_BOUND_MS = 20_000

/** Unit tests take seconds together; processes of them start as often as there are cores to run on. */
export const UNIT_PROCESSES = 2
