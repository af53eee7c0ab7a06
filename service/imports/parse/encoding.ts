interface Transcoder {
  push(chunk: Uint8Array): Uint8Array
  end(): Uint8Array
}

const none = new Uint8Array()
/** As many bytes as the longest mark has. */
const MARK_BYTES = 3

/**
 * Takes the byte order mark off, and turns UTF-16 into UTF-8. Whether the rest is UTF-8 or Latin-1 is decided line by
 * line, because files that were put together from several exports are both.
 */
export function transcoder(): Transcoder {
  let head: Uint8Array = none
  let decided: Transcoder | null = null

  function decide(): Uint8Array {
    decided = withMark(head)
    const first = decided.push(head.subarray(markBytes(head)))
    head = none
    return first
  }

  return {
    push(chunk) {
      if (decided !== null) return decided.push(chunk)
      head = Buffer.concat([head, chunk])
      return head.length < MARK_BYTES ? none : decide()
    },
    end() {
      const first = decided === null ? decide() : none
      return Buffer.concat([first, decided?.end() ?? none])
    },
  }
}

function markOf(head: Uint8Array): 'utf-8' | 'utf-16le' | 'utf-16be' | null {
  const [a, b, c] = head
  if (a === 0xef && b === 0xbb && c === 0xbf) return 'utf-8'
  if (a === 0xff && b === 0xfe) return 'utf-16le'
  return a === 0xfe && b === 0xff ? 'utf-16be' : null
}

function markBytes(head: Uint8Array): number {
  const mark = markOf(head)
  if (mark === null) return 0
  return mark === 'utf-8' ? 3 : 2
}

function withMark(head: Uint8Array): Transcoder {
  const mark = markOf(head)
  if (mark === null || mark === 'utf-8') return { push: (chunk) => chunk, end: () => none }
  const decoder = new TextDecoder(mark, { ignoreBOM: true })
  return {
    push: (chunk) => Buffer.from(decoder.decode(chunk, { stream: true })),
    end: () => Buffer.from(decoder.decode()),
  }
}
