export type { OutgoingMessage, Published, Publisher } from './port.ts'
