import type { ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { TestContext } from 'node:test'
import type { CryptoKey, JWK } from 'jose'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { listening } from './world.ts'

/** Signs tokens and serves its keys over HTTP, as an identity provider does. */
export interface Issuer {
  readonly issuer: string
  /** Where its keys are. */
  readonly url: string
  /** How often they were requested. */
  readonly requests: number
  /** The keys that it serves: by default all that it created. */
  published: readonly JWK[]
  /** Answers in place of the keys. */
  answer: ((response: ServerResponse) => unknown) | null
  /** A new key, served from now on. */
  create(algorithm: string, kid: string): Promise<Signer>
}

export interface Signer {
  readonly jwk: JWK
  readonly publicKey: CryptoKey
  /** A new token, valid for five minutes by default. */
  token(claims?: Readonly<Record<string, unknown>>, header?: Readonly<Record<string, unknown>>): Promise<string>
}

/** An unknown extension in a token's header. */
export const EXTENSION = 'urn:example:extension'
export const AUDIENCE = 'https://api.example.com'
const ISSUER = 'https://id.example.com'
let tokens = 0

export const secondsFromNow = (seconds: number) => Math.floor(Date.now() / 1_000) + seconds

export async function openIssuer(context: TestContext): Promise<Issuer> {
  let requests = 0
  const server = createServer((_request, response) => {
    requests++
    if (issuer.answer !== null) return void issuer.answer(response)
    response
      .writeHead(200, { 'content-type': 'application/jwk-set+json' })
      .end(JSON.stringify({ keys: issuer.published }))
  })
  const port = await listening(context, server)
  const issuer: Issuer = {
    issuer: ISSUER,
    url: `http://127.0.0.1:${port}/keys?policy=all`,
    get requests() {
      return requests
    },
    published: [],
    answer: null,
    async create(algorithm, kid) {
      const signer = await createSigner(algorithm, kid)
      issuer.published = [...issuer.published, signer.jwk]
      return signer
    },
  }
  return issuer
}

/** A signer whose key no issuer serves until a test publishes it. */
export async function createSigner(algorithm: string, kid: string): Promise<Signer> {
  const { publicKey, privateKey } = await generateKeyPair(algorithm, { extractable: true })
  const jwk = { ...(await exportJWK(publicKey)), kid, use: 'sig', alg: algorithm }
  return {
    jwk,
    publicKey,
    token: (claims = {}, header = {}) =>
      new SignJWT({
        iss: ISSUER,
        sub: 'ann',
        aud: AUDIENCE,
        exp: secondsFromNow(300),
        jti: String(++tokens),
        ...claims,
      })
        .setProtectedHeader({ alg: algorithm, kid, ...header })
        .sign(privateKey, { crit: { [EXTENSION]: true } }),
  }
}
