import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { root } from '../../tools/command.ts'
import { measure } from './measure.ts'

/**
 * The one place where a benchmark looks behind the package's door: no entry exports the fingerprint of raw bytes, and
 * through an operation it could only be measured together with a claim. By address, because the door stays closed for
 * everything that is shipped.
 */
const file = pathToFileURL(join(root, 'src', 'ledger', 'core', 'fingerprint.ts')).href
const { fingerprintJsonBytes } = (await import(file)) as {
  fingerprintJsonBytes: (json: Uint8Array, shape: number) => string
}

const SHAPE = 1

measure((body) => fingerprintJsonBytes(body, SHAPE))
