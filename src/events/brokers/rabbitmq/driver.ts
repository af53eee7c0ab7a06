/** What is used of a `Connection` of `rabbitmq-client`: the library loads no driver, it is handed one. */

export interface RabbitConnection {
  /** Connected, and not blocked by an alarm of the server. */
  readonly ready: boolean
  acquire(options?: { readonly emitErrorsFromChannel?: boolean }): Promise<RabbitChannel>
  on(event: 'error', listener: (error: unknown) => void): unknown
}

export interface RabbitChannel {
  readonly active: boolean
  confirmSelect(): Promise<void>
  exchangeDeclare(exchange: RabbitExchange): Promise<void>
  queueDeclare(queue: RabbitQueue): Promise<unknown>
  queueBind(binding: RabbitBinding): Promise<void>
  basicPublish(envelope: RabbitEnvelope, body: Buffer): Promise<void>
  basicQos(qos: { readonly prefetchCount: number }): Promise<void>
  basicConsume(
    options: { readonly queue: string },
    receive: (delivery: RabbitDelivery) => void,
  ): Promise<{ readonly consumerTag: string }>
  basicCancel(consumer: { readonly consumerTag: string }): Promise<unknown>
  /** Throws on a channel that is closed. */
  basicAck(delivery: { readonly deliveryTag: number }): void
  basicNack(delivery: { readonly deliveryTag: number; readonly requeue: boolean }): void
  on(event: 'basic.return', listener: (message: RabbitReturn) => void): unknown
  /** The server has ended the consumer; the channel stays open. */
  on(event: 'basic.cancel', listener: (consumerTag: string, error: unknown) => void): unknown
  on(event: 'error', listener: (error: unknown) => void): unknown
  on(event: 'close', listener: () => void): unknown
  close(): Promise<void>
}

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

export interface RabbitBinding {
  readonly exchange: string
  readonly queue: string
  readonly routingKey: string
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

export interface RabbitDelivery extends RabbitMessage {
  readonly deliveryTag: number
}
