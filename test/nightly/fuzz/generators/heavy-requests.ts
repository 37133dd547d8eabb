import { PATH_BYTES_MAX } from '../../../../src/http/limits.ts'
import { COLLECTION, GREAT_NAME } from './events.ts'
import { BODY_BYTES, type Heavy, listOf } from './heavy-shape.ts'
import { pair } from './queries.ts'

/** The longest query that the server parses. */
const QUERY_BYTES = 64 * 1024 - 200

function get(kind: Heavy['kind'], about: string, query: () => string): Heavy {
  return {
    kind,
    about,
    make: () => ({ method: 'GET', target: `${COLLECTION}?${query()}`, headers: {} }),
  }
}

const selector = (
  about: string,
  name: 'labelSelector' | 'fieldSelector',
  text: () => string,
): Heavy => get('selector', about, () => pair(name, text()).slice(0, QUERY_BYTES))

const token = (about: string, json: () => string): Heavy =>
  get('token', about, () =>
    pair('continue', Buffer.from(json()).toString('base64url')).slice(0, QUERY_BYTES),
  )

function accept(about: string, header: () => string, name = 'accept'): Heavy {
  return {
    kind: 'accept',
    about,
    make: () => ({
      method: name === 'accept' ? 'GET' : 'POST',
      target: `${COLLECTION}?dryRun=All`,
      headers: { [name]: header() },
      body: name === 'accept' ? '' : '{}',
    }),
  }
}

/** A large event in all formats. */
function shown(about: string, accept: string, query = ''): Heavy {
  return {
    kind: 'accept',
    about: `a great event as ${about}`,
    needsGreat: true,
    make: () => ({
      method: 'GET',
      target: `${COLLECTION}/${GREAT_NAME}?${query}`,
      headers: { accept },
    }),
  }
}

const TABLE = 'application/json;as=Table;g=meta.k8s.io;v=v1'
/** Nearly the maximum of all headers and the request line. */
const HEADER_BYTES = 900_000

function deletion(about: string, body: () => string, type = 'application/json'): Heavy {
  return {
    kind: 'delete-options',
    about,
    make: () => ({
      method: 'DELETE',
      target: `${COLLECTION}/base-0?dryRun=All`,
      headers: { 'content-type': type },
      body: body(),
    }),
  }
}

export const HEAVY_REQUESTS: readonly Heavy[] = [
  selector('100 requirements', 'labelSelector', () => listOf(100, (at) => `key${at}=value${at}`)),
  selector('101 requirements', 'labelSelector', () => listOf(101, (at) => `key${at}=value${at}`)),
  selector('1,000 values', 'labelSelector', () => `a in (${listOf(1000, (at) => `v${at}`)})`),
  selector(
    'a long list of values',
    'labelSelector',
    () => `a in (${listOf(9000, (at) => `v${at}`)})`,
  ),
  selector(
    'a long list of bad values',
    'labelSelector',
    () => `a in (${listOf(3000, () => '-é-')})`,
  ),
  selector('a long key', 'labelSelector', () => 'k'.repeat(QUERY_BYTES)),
  selector('a long key beyond ASCII', 'labelSelector', () => 'é'.repeat(QUERY_BYTES / 6)),
  selector('only commas', 'labelSelector', () => ','.repeat(QUERY_BYTES / 3)),
  selector('only brackets', 'labelSelector', () => 'a in ('.repeat(3000)),
  selector('only spaces', 'labelSelector', () => ' '.repeat(QUERY_BYTES / 3)),
  selector('only denials', 'labelSelector', () => '!'.repeat(QUERY_BYTES)),
  selector('a long number', 'labelSelector', () => `a>${'9'.repeat(QUERY_BYTES)}`),
  selector('100 fields', 'fieldSelector', () => listOf(100, () => 'type!=x')),
  selector('fields without end', 'fieldSelector', () => listOf(6000, () => 'type!=x')),
  selector('a long value', 'fieldSelector', () => `type=${'x'.repeat(QUERY_BYTES)}`),
  selector(
    'a long value of escapes',
    'fieldSelector',
    () => `type=${'\\\\'.repeat(QUERY_BYTES / 6)}`,
  ),
  selector(
    'a long value of bad escapes',
    'fieldSelector',
    () => `type=${'\\a'.repeat(QUERY_BYTES / 4)}`,
  ),
  selector('only commas', 'fieldSelector', () => ','.repeat(QUERY_BYTES / 3)),
  selector('only backslashes', 'fieldSelector', () => '\\'.repeat(QUERY_BYTES / 3)),
  token('a long start', () =>
    JSON.stringify({ v: 'meta.k8s.io/v1', rv: 1, start: 'x'.repeat(40_000) }),
  ),
  token('a start of many parts', () =>
    JSON.stringify({ v: 'meta.k8s.io/v1', rv: 1, start: 'a/'.repeat(20_000) }),
  ),
  token('deep JSON', () => '['.repeat(45_000)),
  token('a long number', () => `{"rv":${'9'.repeat(45_000)}}`),
  token('a long version', () => JSON.stringify({ v: 'é'.repeat(20_000), rv: 1, start: 'a\0' })),
  get('token', 'no base64 at its end', () => `continue=${'A'.repeat(QUERY_BYTES - 20)}!`),
  get('query', '1,000 dry runs', () => listOf(999, () => 'dryRun=x').replaceAll(',', '&')),
  get('query', 'a long limit', () => `limit=${'9'.repeat(QUERY_BYTES - 10)}`),
  get('query', 'a long timeout', () => `timeout=${'9'.repeat(QUERY_BYTES - 10)}s`),
  get('query', 'a timeout of many parts', () => `timeout=${'1h'.repeat(QUERY_BYTES / 2 - 10)}`),
  get('query', 'a long timeout of points', () => `timeout=${'1.'.repeat(QUERY_BYTES / 2 - 10)}`),
  get('query', 'a long version', () => `resourceVersion=${'0'.repeat(QUERY_BYTES - 20)}`),
  get(
    'query',
    'a long match',
    () => `resourceVersion=1&resourceVersionMatch=${'%C3%A9'.repeat(10_000)}`,
  ),
  get('query', 'percent signs', () => '%'.repeat(QUERY_BYTES)),
  get('query', '1,000 empty pairs', () => '&'.repeat(999)),
  {
    kind: 'query',
    about: '999 field managers and dry runs',
    make: () => ({
      target: `${COLLECTION}?${Array.from({ length: 499 }, () => 'fieldManager=%07&dryRun=x').join('&')}`,
      body: '{}',
    }),
  },
  {
    kind: 'query',
    about: 'a long field manager and validation',
    make: () => ({
      target: `${COLLECTION}?fieldManager=${'%07'.repeat(10_000)}&fieldValidation=${'%07'.repeat(10_000)}`,
      body: '{}',
    }),
  },
  ...['GET', 'PUT', 'PATCH', 'DELETE'].map(
    (method): Heavy => ({
      kind: 'query',
      about: 'a long name in the path',
      make: () => ({
        method,
        target: `${COLLECTION}/${'%C3%A9'.repeat(HEADER_BYTES / 6)}?dryRun=All`,
        headers: method === 'PATCH' ? { 'content-type': 'application/merge-patch+json' } : {},
        body: method === 'GET' || method === 'DELETE' ? '' : '{}',
      }),
    }),
  ),
  ...['GET', 'POST', 'DELETE'].map(
    (method): Heavy => ({
      kind: 'query',
      about: 'a long namespace in the path',
      make: () => ({
        method,
        target: `/apis/events.k8s.io/v1/namespaces/${'x'.repeat(HEADER_BYTES)}/events?dryRun=All`,
        headers: {},
        body: method === 'POST' ? '{"metadata":{"name":"a"}}' : '',
      }),
    }),
  ),
  {
    kind: 'query',
    about: 'a path of many parts',
    make: () => ({
      method: 'GET',
      // The longest that the listener accepts.
      target: `/apis/events.k8s.io/v1${'/a'.repeat(PATH_BYTES_MAX / 2 - 16)}`,
      headers: {},
    }),
  },
  {
    kind: 'query',
    about: 'a long wish for what rows include',
    make: () => ({
      method: 'GET',
      target: `${COLLECTION}?includeObject=${'%07'.repeat(20_000)}`,
      headers: { accept: TABLE },
    }),
  },
  shown('JSON', 'application/json'),
  shown('indented JSON', 'application/json', 'pretty=true'),
  shown('YAML', 'application/yaml'),
  shown('a table', TABLE),
  shown('a table with itself', TABLE, 'includeObject=Object&pretty=1'),
  shown('its metadata', 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1', 'pretty=1'),
  accept('thousands of clauses', () => 'a/b,'.repeat(HEADER_BYTES / 4)),
  accept('thousands of ranges', () => listOf(60_000, (at) => `*/*;q=0.${at}`)),
  accept('thousands of unfit tables', () => 'application/json;as=x,'.repeat(HEADER_BYTES / 22)),
  accept('thousands of parameters', () => `application/json${';a=b'.repeat(HEADER_BYTES / 4)}`),
  accept('only semicolons', () => ';'.repeat(HEADER_BYTES)),
  accept('only slashes', () => '/'.repeat(HEADER_BYTES)),
  accept('a long type', () => `${'a'.repeat(HEADER_BYTES)}/*`),
  accept('spaces', () => `a${' '.repeat(HEADER_BYTES)}b`),
  accept(
    'a content type of many parameters',
    () => `application/json${';a=b'.repeat(HEADER_BYTES / 4)}`,
    'content-type',
  ),
  accept(
    'a content type of many spaces',
    () => `application/json${' '.repeat(HEADER_BYTES)}x`,
    'content-type',
  ),
  accept(
    'a content type of semicolons and spaces',
    () => `application/json${'; '.repeat(HEADER_BYTES / 2)}`,
    'content-type',
  ),
  accept(
    'a content type with an open quote',
    () => `application/json;a="${'\\a'.repeat(HEADER_BYTES / 2)}`,
    'content-type',
  ),
  accept('a content type without end', () => 'a'.repeat(HEADER_BYTES), 'content-type'),
  deletion('79,000 dry runs', () => `{"dryRun":[${listOf(79_000, () => '"All"')}]}`),
  deletion('79,000 bad dry runs', () => `{"dryRun":[${listOf(70_000, () => '"\\u0007"')}]}`),
  deletion('39,000 unknown names', () => `{${listOf(39_000, (at) => `"x${at}":1`)}}`),
  deletion(
    'a uid of megabytes',
    () => `{"preconditions":{"uid":"${'é'.repeat(BODY_BYTES / 2 - 100)}"}}`,
  ),
  deletion(
    'a resourceVersion of megabytes',
    () => `{"preconditions":{"resourceVersion":"${'9'.repeat(BODY_BYTES - 100)}"}}`,
  ),
  deletion(
    'a policy of megabytes',
    () => `{"propagationPolicy":"${'é'.repeat(BODY_BYTES / 2 - 100)}"}`,
  ),
  deletion('a kind of megabytes', () => `{"kind":"${'é'.repeat(BODY_BYTES / 2 - 100)}"}`),
  deletion('a kind that is a great object', () => `{"kind":[${listOf(70_000, () => '1')}]}`),
  deletion(
    'a grace period of megabytes',
    () => `{"gracePeriodSeconds":${'9'.repeat(BODY_BYTES - 100)}}`,
  ),
  deletion('200,000 deep', () => '['.repeat(200_000)),
  deletion(
    'an alias bomb',
    () =>
      'a: &a [x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d,*d]',
    'application/yaml',
  ),
]
