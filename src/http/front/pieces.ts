/** What has come of a body. */
export interface Pieces {
  /** The piece is kept as it is, or copied: its owner does not change it afterwards. */
  add(piece: Uint8Array): void
  /** Of what is held. */
  readonly bytes: number
  /** Gives it away, in as few pieces as it is held in. */
  take(): Uint8Array[]
  /** Gives it away as one. */
  takeWhole(): Uint8Array
}

const NOTHING = Buffer.alloc(0)

/**
 * Holds a body in blocks. A client chooses how large its chunks are, and one of a single byte takes some hundred bytes of memory as
 * long as it is an object of its own: what a body takes must be known from its length.
 *
 * @example
 * ```ts
 * import { createPieces } from 'onceonly/http/limits'
 *
 * const pieces = createPieces()
 * for await (const chunk of process.stdin) pieces.add(chunk)
 * console.log(pieces.bytes, pieces.takeWhole())
 * ```
 */
export function createPieces(): Pieces {
  /** Most bodies are one piece, which is never copied. */
  let first: Uint8Array | null = null
  let full: Uint8Array[] = []
  let open: Uint8Array = NOTHING
  let used = 0
  let bytes = 0

  function copyIn(piece: Uint8Array): void {
    for (let left = piece; left.length > 0; ) {
      if (used === open.length) {
        if (used > 0) full.push(open)
        // As much again as there is: never more than half of what is held is empty.
        open = Buffer.allocUnsafeSlow(Math.max(left.length, Math.min(bytes, BLOCK_BYTES)))
        used = 0
      }
      const fits = left.subarray(0, open.length - used)
      open.set(fits, used)
      used += fits.length
      left = left.subarray(fits.length)
    }
  }

  function take(): Uint8Array[] {
    const taken = [...(first === null ? [] : [first]), ...full, ...(used === 0 ? [] : [open.subarray(0, used)])]
    first = null
    full = []
    open = NOTHING
    used = 0
    bytes = 0
    return taken
  }

  return {
    add(piece) {
      bytes += piece.length
      if (first === null) first = piece
      else copyIn(piece)
    },
    get bytes() {
      return bytes
    },
    take,
    takeWhole() {
      const length = bytes
      const taken = take()
      return taken.length === 1 && taken[0] !== undefined ? taken[0] : Buffer.concat(taken, length)
    },
  }
}

/** Large enough to be few, small enough to be no loss when it stays half empty. */
const BLOCK_BYTES = 64 * 1_024
