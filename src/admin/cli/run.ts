/** Answers the exit status: 0 when all is well, 1 when something was found, 2 when nothing could be done. */
export type Run = (args: readonly string[]) => Promise<number>
