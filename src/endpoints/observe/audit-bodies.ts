/** Request and response bodies for the audit log. */
import { parseYaml } from '../../codec/yaml/yaml.ts'
import type { Chunk, Request } from '../../http/exchange.ts'
import { isObject, type Json, memberOf } from '../../lib/json.ts'
import { parseContentType } from '../request/media-type.ts'

/** Longer bodies are omitted and marked as such: one request must not fill the log. */
export const auditBodyBytesMax: number = 100 * 1024

/** JSON on a single line; undefined for a body that is neither JSON nor YAML. */
export type LoggedBody = string | 'too-long' | undefined

export interface LoggedBodyOptions {
  /** The Content-Type header. If undefined, the body is JSON. */
  readonly contentType: string | undefined
  readonly logsManagedFields: boolean
  /** Whether the bytes are compressed, as those of long responses are. */
  readonly isEncoded?: boolean
}

export function loggedBody(bytes: Chunk, options: LoggedBodyOptions): LoggedBody {
  const form = formOf(options.contentType)
  if (bytes.length === 0 || form === undefined) return undefined
  if (options.isEncoded === true || bytes.length > auditBodyBytesMax) return 'too-long'
  try {
    const text = typeof bytes === 'string' ? bytes : Buffer.from(bytes).toString('utf8')
    const tree: Json = form === 'json' ? JSON.parse(text) : parseYaml(text).value
    if (!options.logsManagedFields) dropManagedFields(tree)
    return JSON.stringify(tree)
  } catch {
    // The request with this body was refused, so there is no object to log.
    return undefined
  }
}

function formOf(contentType: string | undefined): 'json' | 'yaml' | undefined {
  if (contentType === undefined) return 'json'
  const type = parseContentType(contentType) ?? ''
  if (/[/+]json$/.test(type)) return 'json'
  return /[/+]yaml$/.test(type) ? 'yaml' : undefined
}

/** Changes the object itself, or each object of a list. */
function dropManagedFields(tree: Json): void {
  if (!isObject(tree)) return
  const items = memberOf(tree, 'items')
  for (const object of Array.isArray(items) ? items : [tree]) {
    const metadata = isObject(object) ? memberOf(object, 'metadata') : undefined
    if (isObject(metadata)) delete metadata['managedFields']
  }
}

/** Records the body when the handler reads it, since the audit log never reads a body itself. */
export interface ObservedRequest {
  readonly request: Request
  /** Undefined unless the handler has read the whole body. */
  bytes(): Buffer | undefined
}

export function observeBody(request: Request): ObservedRequest {
  let seen: Buffer | undefined
  const body = async (bytesMax?: number): Promise<Buffer> => {
    seen = await request.body(bytesMax)
    return seen
  }
  const observed = new Proxy(request, {
    get: (target, name) => (name === 'body' ? body : Reflect.get(target, name, target)),
  })
  return { request: observed, bytes: () => seen }
}

/** Records a stream that passes through it, up to slightly more than the audit log stores. */
export class ObservedStream {
  readonly #chunks: Buffer[] = []
  #bytes = 0

  async *of(chunks: AsyncIterable<Chunk>): AsyncGenerator<Chunk> {
    for await (const chunk of chunks) {
      if (this.#bytes <= auditBodyBytesMax) this.#chunks.push(Buffer.from(chunk))
      this.#bytes += chunk.length
      yield chunk
    }
  }

  bytes(): Buffer {
    return Buffer.concat(this.#chunks)
  }
}
