export type {
  Acknowledgement,
  IncomingMessage,
  Receive,
  SubscribeOptions,
  Subscriber,
  Subscription,
} from './port.ts'
