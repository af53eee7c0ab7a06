export type { Client, ClientEvent, ClientOptions, ClientSendOptions, SentRequest } from './client.ts'
export { createClient } from './client.ts'
export type { KeyStorage } from './key.ts'
export { newKey } from './key.ts'
