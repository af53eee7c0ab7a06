import { readKey } from './jwk.ts'
import { gatewayLimits } from './limits.ts'
import type { Check } from './schema.ts'
import { either, fields, isFields, listOf, matching, text } from './schema.ts'

const MOST_AUDIENCES = 100
const LOOPBACK = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/i

/** An attacker who can change keys in transit can sign for every caller. */
const keysUrl: Check = (value, path, faults) => {
  const url = typeof value === 'string' && URL.canParse(value) ? new URL(value) : null
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    faults.push({ path, what: 'is not an http or https URL' })
  } else if (url.username !== '' || url.password !== '' || url.hash !== '') {
    faults.push({ path, what: 'has a credential or a fragment' })
  } else if (url.protocol === 'http:' && !LOOPBACK.test(url.hostname)) {
    faults.push({ path, what: 'is not https, so that the keys could be exchanged on their way' })
  }
}

const publicKey: Check = (value, path, faults) => {
  if (isFields(value) && ('d' in value || 'k' in value)) {
    faults.push({ path, what: 'holds a secret: give the public key only' })
  } else if (readKey(value) === null) {
    faults.push({ path, what: 'is not a public key for RS256, PS256, ES256 or EdDSA, as a JWK' })
  }
}

const nothing: Check = (value, path, faults) => {
  if (value !== null) faults.push({ path, what: 'is not null' })
}

const members = fields(
  {
    issuer: text(),
    audience: either(
      [nothing, text(), listOf(text(), MOST_AUDIENCES)],
      'is neither a text nor a list of texts nor null',
    ),
    url: keysUrl,
    ca: matching(/-----BEGIN CERTIFICATE-----/, 'is not a certificate in PEM'),
    file: text(),
    keys: listOf(publicKey, gatewayLimits.jwksKeys),
  },
  ['issuer', 'audience'],
)

/** The keys are in one place, and the place is named. */
export const jwks: Check = (value, path, faults) => {
  members(value, path, faults)
  if (!isFields(value)) return
  const sources = ['url', 'file', 'keys'].filter((name) => value[name] !== undefined)
  if (sources.length !== 1) faults.push({ path, what: 'needs one of `url`, `file` and `keys`' })
  if (value['ca'] !== undefined && value['url'] === undefined) {
    faults.push({ path: `${path}.ca`, what: 'is for keys at a `url`' })
  }
}
