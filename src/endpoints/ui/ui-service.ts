/**
 * The web page: `/ui/` and its files. They contain no data and are the same for everybody, so they
 * are public. The page reads events from the API, with the credentials of its user.
 */
import { methodNotAllowed, unknownPath } from '../../api/status.ts'
import { UI_PATH } from '../../gate/server-paths.ts'
import type { Handler, Request } from '../../http/exchange.ts'
import { statusResponse, textResponse } from '../response/respond.ts'
import type { Service } from '../services.ts'
import { acceptedCodings } from './content-coding.ts'
import type { PageFile, PageFiles } from './page-files.ts'
import { withPageHeaders } from './page-headers.ts'

export const UI = 'ui'

const PAGE = `${UI_PATH}/`
const ASSETS = `${PAGE}assets/`
/** Revalidated on each load, so that a new version of the page is used at once. */
const REVALIDATED = 'no-cache'
/** Cached for good, since the name of an asset contains a hash of its content. */
const IMMUTABLE = 'public, max-age=31536000, immutable'
/** The path of the page relative to `/ui`. */
const RELATIVE_PAGE = 'ui/'
/**
 * The longest query that is sent back in a header. The state of the page needs a few hundred bytes.
 */
const SEARCH_LENGTH_MAX = 4096
const READS: ReadonlySet<string> = new Set(['GET', 'HEAD'])

/** Serves everything under `/ui`. Without files, it says that the page was not built. */
export function uiService(files: PageFiles | undefined): Service {
  const handlers = new Map<string, Handler>([
    [UI_PATH, redirectToPage],
    [PAGE, files === undefined ? notBuilt : fileHandler(files.index, REVALIDATED)],
  ])
  for (const [name, file] of files?.assets ?? []) {
    handlers.set(`${ASSETS}${name}`, fileHandler(file, IMMUTABLE))
  }
  const found = new Map([...handlers].map(([path, handler]) => [path, forReads(handler)]))
  return {
    name: UI,
    paths: [PAGE],
    isOpenToHost: true,
    isPublic: true,
    isServerWide: true,
    find: ({ path }) => found.get(path) ?? (path.startsWith(PAGE) ? unknown : undefined),
  }
}

function forReads(handler: Handler): Handler {
  return async (request) => {
    if (READS.has(request.method)) return withPageHeaders(await handler(request))
    const refusal = statusResponse(request, methodNotAllowed())
    return withPageHeaders({ ...refusal, headers: { ...refusal.headers, allow: 'GET, HEAD' } })
  }
}

const unknown: Handler = async (request) => withPageHeaders(statusResponse(request, unknownPath()))

/** The location is relative, since a proxy may serve this server under a path of its own. */
const redirectToPage: Handler = async ({ query }) => {
  const search = query.size === 0 ? '' : `?${query}`
  const target = `${RELATIVE_PAGE}${search.length > SEARCH_LENGTH_MAX ? '' : search}`
  const response = textResponse(308, '')
  return { ...response, headers: { ...response.headers, location: target } }
}

const notBuilt: Handler = async () =>
  textResponse(404, 'The web page is not part of this build: run "npm run build".\n')

function fileHandler(file: PageFile, cacheControl: string): Handler {
  return async (request) => {
    const coding = acceptedCodings(request.headers['accept-encoding']).find((accepted) =>
      file.compressed.has(accepted),
    )
    const form = (coding && file.compressed.get(coding)) ?? file.plain
    const headers = { etag: form.etag, 'cache-control': cacheControl, vary: 'Accept-Encoding' }
    if (hasCached(request, form.etag)) return { status: 304, headers, body: '' }
    return {
      status: 200,
      headers: {
        ...headers,
        'content-type': file.contentType,
        ...(coding === undefined ? {} : { 'content-encoding': coding }),
      },
      body: form.bytes,
    }
  }
}

/** A proxy that compressed the bytes marks the ETag as weak. */
function hasCached({ headers }: Request, etag: string): boolean {
  const known = headers['if-none-match']?.split(',').map((tag) => tag.trim().replace(/^W\//, ''))
  return known !== undefined && (known.includes(etag) || known.includes('*'))
}
