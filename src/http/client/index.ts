export type { Client, ClientEvent, ClientOptions, SendOptions, Sent } from './client.ts'
export { createClient } from './client.ts'
export type { KeyPlace } from './key.ts'
export { newKey } from './key.ts'
