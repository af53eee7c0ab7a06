import { createRandom, type Random } from '../../testing/random.ts'

/** Bytes that mean something to one of the parsers, so that chance finds their corners. */
const special = [...Buffer.from('"\\,;=%&+?#/.:-*@ \t\r\n\0{}[]e0aF'), 0x7f, 0x80, 0xc3, 0xff]

/** The same inputs on every machine: each a seed that was cut, repeated, spliced and overwritten in a few places. */
export function* mutations(seeds: readonly string[], count: number, seed: number): Generator<Buffer> {
  const random = createRandom(seed)
  const buffers = seeds.map((text) => Buffer.from(text, 'latin1'))
  for (let index = 0; index < count; index++) {
    let bytes: Buffer = random.pick(buffers)
    for (let steps = 1 + random.below(6); steps > 0; steps--) bytes = mutated(bytes, random.pick(buffers), random)
    yield bytes
  }
}

function mutated(bytes: Buffer, other: Buffer, random: Random): Buffer {
  const at = random.below(bytes.length + 1)
  const to = Math.min(bytes.length, at + random.below(12))
  const [head, middle, tail] = [bytes.subarray(0, at), bytes.subarray(at, to), bytes.subarray(to)]
  const byte = Buffer.from([random.chance(0.8) ? random.pick(special) : random.below(256)])
  switch (random.below(6)) {
    case 0:
      return Buffer.concat([head, byte, bytes.subarray(at + 1)])
    case 1:
      return Buffer.concat([head, byte, middle, tail])
    case 2:
      return Buffer.concat([head, tail])
    case 3:
      return Buffer.concat([head, middle, middle, middle, tail])
    case 4:
      return Buffer.concat([head, other.subarray(random.below(other.length + 1))])
    default:
      return head
  }
}
