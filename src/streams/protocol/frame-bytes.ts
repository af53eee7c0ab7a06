/**
 * Bytes of the frames of one session that carry entries. Both ends count a frame as it travels, and until its last entry
 * is done with: otherwise one end would wait for credit that the other one does not owe yet.
 */
export class FrameBytes {
  /** Entries of each that are not done with; the oldest frame comes first. */
  readonly #frames: { entries: number; readonly bytes: number }[] = []

  add(entries: number, bytes: number): void {
    if (entries > 0) this.#frames.push({ entries, bytes })
  }

  /** So many entries more are done with. The bytes of the frames that are done with by it. */
  take(entries: number): number {
    let bytes = 0
    for (let left = entries; left > 0; ) {
      const [first] = this.#frames
      if (first === undefined) break
      const taken = Math.min(left, first.entries)
      left -= taken
      first.entries -= taken
      if (first.entries > 0) break
      bytes += first.bytes
      this.#frames.shift()
    }
    return bytes
  }
}
