import { type KubeconfigServer, loadKubeconfig } from '../../clusters/kubeconfig.ts'
import { OriginClient } from '../../clusters/origin-client.ts'
import { follow, type OnPoll } from '../../lib/files/follow.ts'
import type { JsonObject } from '../../lib/json.ts'
import type { Log } from '../../lib/log/log.ts'
import { type PostOptions, REVIEWS_MAX, ReviewClient } from './review-client.ts'

export interface WebhookClientOptions {
  readonly log: Log
  readonly onPoll?: OnPoll | undefined
}

/**
 * Sends reviews to the server of a kubeconfig. The file and those that it names are polled once a
 * second; while they are unusable after a change, the previous ones stay in use.
 */
export class WebhookClient {
  #server: KubeconfigServer
  readonly #client: OriginClient
  readonly #reviews: ReviewClient
  readonly #follower: { stop(): void }

  /** Rejects if the file is unusable, and names file and field. */
  static async open(path: string, options: WebhookClientOptions): Promise<WebhookClient> {
    return new WebhookClient(path, await loadKubeconfig(path), options)
  }

  private constructor(
    path: string,
    server: KubeconfigServer,
    { log, onPoll }: WebhookClientOptions,
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
      onRecovered: () => log.info('Webhook configuration valid again, unchanged', { file: path }),
      onPoll,
    })
  }

  /** The client certificate and the authorities of the webhook, in PEM. */
  get certificates(): string {
    return `${this.#server.ca ?? ''}\n${this.#server.clientCertificate?.cert ?? ''}`
  }

  post(body: object, options: PostOptions): Promise<JsonObject> {
    return this.#reviews.post(body, options)
  }

  stop(): void {
    this.#follower.stop()
    this.#client.close()
  }
}
