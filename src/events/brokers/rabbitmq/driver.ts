/** What is used of a `Connection` of `rabbitmq-client`: the library loads no driver, it is handed one. */

export interface RabbitConnection {
  /** Connected, and not blocked by an alarm of the server. */
  readonly ready: boolean
  acquire(): Promise<RabbitChannel>
  createConsumer(options: RabbitConsumerOptions, receive: (message: RabbitMessage) => Promise<Verdict>): RabbitConsumer
  on(event: 'error', listener: (error: unknown) => void): unknown
}

export interface RabbitChannel {
  readonly active: boolean
  confirmSelect(): Promise<void>
  exchangeDeclare(exchange: RabbitExchange): Promise<void>
  queueDeclare(queue: RabbitQueue): Promise<unknown>
  basicPublish(envelope: RabbitEnvelope, body: Buffer): Promise<void>
  on(event: 'basic.return', listener: (message: RabbitReturn) => void): unknown
  close(): Promise<void>
}

export interface RabbitConsumer {
  on(event: 'ready', listener: () => void): unknown
  on(event: 'error', listener: (error: unknown) => void): unknown
  close(): Promise<void>
}

/** As `ConsumerStatus` has them. */
export const verdicts = { acknowledge: 0, requeue: 1 } as const
type Verdict = (typeof verdicts)[keyof typeof verdicts]

export interface RabbitExchange {
  readonly exchange: string
  readonly type: string
  readonly durable: boolean
}

export interface RabbitQueue {
  readonly queue: string
  readonly durable: boolean
  readonly arguments: Readonly<Record<string, string | number>>
}

export interface RabbitConsumerOptions {
  readonly queue: string
  readonly queueOptions: RabbitQueue
  readonly exchanges: RabbitExchange[]
  readonly queueBindings: { readonly exchange: string; readonly queue: string; readonly routingKey: string }[]
  readonly qos: { readonly prefetchCount: number }
  readonly concurrency: number
}

export interface RabbitEnvelope {
  readonly exchange: string
  readonly routingKey: string
  readonly mandatory: boolean
  readonly durable: boolean
  readonly messageId: string
  readonly contentType: string
  readonly contentEncoding: string
  readonly headers: Readonly<Record<string, unknown>>
  readonly expiration?: string
}

export interface RabbitReturn {
  readonly messageId?: string
  readonly routingKey: string
  readonly replyText: string
}

export interface RabbitMessage {
  readonly routingKey: string
  readonly messageId?: string
  readonly headers?: Readonly<Record<string, unknown>>
  readonly body: unknown
}
