import { type KubeconfigServer, loadKubeconfig } from '../../clusters/kubeconfig.ts'
import { OriginClient } from '../../clusters/origin-client.ts'
import { follow, type OnLook } from '../../lib/files/follow.ts'
import type { JsonObject } from '../../lib/json.ts'
import type { Log } from '../../lib/log/log.ts'
import { type PostOptions, REVIEWS_MAX, ReviewClient } from './review-client.ts'

export interface WebhookClientOptions {
  readonly log: Log
  readonly onLook?: OnLook | undefined
}

/**
 * Sends reviews to the server of a kubeconfig. The file and those that it names are polled once a
 * second; while new ones cannot be used, the old ones stay.
 */
export class WebhookClient {
  #server: KubeconfigServer
  readonly #client: OriginClient
  readonly #reviews: ReviewClient
  readonly #follower: { stop(): void }

  /** Rejects if the file cannot be used; the error has file and field. */
  static async open(path: string, options: WebhookClientOptions): Promise<WebhookClient> {
    return new WebhookClient(path, await loadKubeconfig(path), options)
  }

  private constructor(
    path: string,
    server: KubeconfigServer,
    { log, onLook }: WebhookClientOptions,
  ) {
    this.#server = server
    this.#client = new OriginClient(() => this.#server, { socketsMax: REVIEWS_MAX })
    this.#reviews = new ReviewClient(this.#client, { path: '', peer: 'the webhook' })
    this.#follower = follow({
      inUse: server,
      load: (current) => loadKubeconfig(path, {}, current),
      onChange: (found) => {
        this.#server = found
        log.info('Webhook configuration reloaded', { file: path })
      },
      onProblem: (err) => log.warn('Webhook configuration not reloaded', { err }),
      onMended: () => log.info('Webhook configuration valid again, unchanged', { file: path }),
      onLook,
    })
  }

  /** PEM: the client certificate, and the authorities of the webhook. */
  get certificates(): string {
    return `${this.#server.ca ?? ''}\n${this.#server.clientCertificate?.cert ?? ''}`
  }

  /** Rejects with a ReviewError unless the response is a JSON object, in time, with status 2xx. */
  post(body: object, options: PostOptions): Promise<JsonObject> {
    return this.#reviews.post(body, options)
  }

  stop(): void {
    this.#follower.stop()
    this.#client.close()
  }
}
