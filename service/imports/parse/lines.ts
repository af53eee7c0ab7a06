import { isUtf8 } from 'node:buffer'
import { transcoder } from './encoding.ts'
import { LINE_BYTES_MOST } from './entry.ts'

export interface Line {
  /** From 1, as an editor counts. */
  readonly number: number
  /** Null: longer than any line may be. */
  readonly text: string | null
}

export interface LineReader {
  push(chunk: Uint8Array): readonly Line[]
  end(): readonly Line[]
}

/** What a format makes of the lines of a file. */
export interface LineParser {
  push(line: Line): void
  end(): void
}

const LF = 0x0a
const CR = 0x0d
/** What calls itself Latin-1 is Windows-1252 more often than not, and the one contains the other. */
const latin = new TextDecoder('windows-1252')

/** Cuts bytes into lines at LF, CRLF and CR, wherever the chunks end. It holds one line at most. */
export function lineReader(): LineReader {
  const input = transcoder()
  let held: Uint8Array[] = []
  let heldBytes = 0
  let afterCr = false
  let number = 0

  function hold(part: Uint8Array): void {
    heldBytes += part.length
    // Past the bound only its length is still of interest.
    if (heldBytes > LINE_BYTES_MOST) held = []
    else if (part.length > 0) held.push(part)
  }

  function finish(): Line {
    const text = heldBytes > LINE_BYTES_MOST ? null : textOf(held)
    held = []
    heldBytes = 0
    return { number: ++number, text }
  }

  function cut(bytes: Uint8Array): readonly Line[] {
    const lines: Line[] = []
    let from = 0
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at]
      if (byte === LF && afterCr) from = at + 1
      else if (byte === LF || byte === CR) {
        hold(bytes.subarray(from, at))
        lines.push(finish())
        from = at + 1
      }
      afterCr = byte === CR
    }
    // A copy, because the reader of a file may use its buffer again.
    hold(new Uint8Array(bytes.subarray(from)))
    return lines
  }

  return {
    push: (chunk) => cut(input.push(chunk)),
    end() {
      const lines = cut(input.end())
      return heldBytes > 0 ? [...lines, finish()] : lines
    },
  }
}

function textOf(parts: readonly Uint8Array[]): string {
  const bytes = parts.length === 1 && parts[0] !== undefined ? parts[0] : Buffer.concat(parts)
  return isUtf8(bytes) ? Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString() : latin.decode(bytes)
}
