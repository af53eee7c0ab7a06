/** What is used of `@nats-io/jetstream` and of `@nats-io/nats-core`: the library loads no driver, it is handed one. */

export interface NatsJetStream {
  publish(subject: string, payload: Uint8Array, options?: Partial<NatsPublishOptions>): Promise<unknown>
  jetstreamManager(checkApi?: boolean): Promise<NatsManager>
  readonly consumers: { get(stream: string, name: string): Promise<NatsConsumer> }
}

export interface NatsPublishOptions {
  readonly msgID: string
  readonly headers: NatsHeaders
  readonly timeout: number
  readonly expect: { readonly streamName?: string }
}

export interface NatsHeaders {
  get(name: string): string
  set(name: string, value: string): void
  keys(): string[]
}

export interface NatsManager {
  readonly streams: {
    info(stream: string): Promise<unknown>
    add(config: NatsStream): Promise<unknown>
    find(subject: string): Promise<string>
  }
  readonly consumers: {
    info(stream: string, consumer: string): Promise<NatsConsumerInfo>
    add(stream: string, config: NatsConsumerConfig): Promise<NatsConsumerInfo>
  }
}

/** Times are in nanoseconds, as the server wants them. */
export interface NatsStream {
  readonly name: string
  readonly subjects: string[]
  readonly retention: 'limits'
  readonly storage: 'file'
  readonly discard: 'new'
  readonly max_age: number
  readonly duplicate_window: number
  readonly num_replicas: number
}

export interface NatsConsumerConfig {
  readonly durable_name: string
  readonly description: string
  readonly filter_subject: string
  readonly ack_policy: 'explicit'
  readonly deliver_policy: 'new' | 'all'
  readonly ack_wait: number
  readonly max_deliver: number
  readonly max_ack_pending: number
}

export interface NatsConsumerInfo {
  readonly config: { readonly ack_wait?: number }
}

export interface NatsConsumer {
  fetch(options: { max_messages: number; expires: number }): Promise<NatsMessages>
}

export interface NatsMessages extends AsyncIterable<NatsMessage> {
  close(): Promise<unknown>
}

export interface NatsMessage {
  readonly subject: string
  readonly data: Uint8Array
  readonly headers: NatsHeaders | undefined
  readonly info: { readonly deliveryCount: number; readonly stream: string; readonly streamSequence: number }
  ack(): void
  nak(delayMs?: number): void
  working(): void
}
