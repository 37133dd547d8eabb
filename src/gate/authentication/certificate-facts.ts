/**
 * Reads the subject, the path length and the name constraints of a certificate. Node does not
 * expose the last two, and both Node and `@peculiar/x509` read subjects that are not strict DER
 * (docs/decisions/0028-parse-client-certificates-by-hand.md).
 */
import { derContent, derInteger, derMembers, derOid, derText, derValue, TAG } from './der.ts'

const COMMON_NAME = '2.5.4.3'
const ORGANIZATION = '2.5.4.10'
/** The attribute in which Kubernetes stores the uid of a user. */
const USER_ID = '1.3.6.1.4.1.57683.2'
const BASIC_CONSTRAINTS = '2.5.29.19'
const NAME_CONSTRAINTS = '2.5.29.30'

export interface CertificateFacts {
  /** The last one if there are several, as in Go; '' if there is none. */
  readonly commonName: string
  readonly organizations: readonly string[]
  readonly userIds: readonly string[]
  /** The maximum number of intermediates below this authority. */
  readonly pathLength: number | undefined
  readonly hasNameConstraints: boolean
}

/** Throws when the certificate is not strict DER, so that it cannot be read in two ways. */
export function certificateFacts(raw: Buffer): CertificateFacts {
  const [tbs] = derMembers(derValue(raw), TAG.sequence)
  const fields = derMembers(tbs, TAG.sequence)
  // The version is optional; the fields after it up to the subject are not.
  const first = fields[0]?.tag === TAG.context ? 1 : 0
  const subject = attributesOf(derMembers(fields[first + 4], TAG.sequence))
  const extensions = extensionsOf(fields.find(({ tag }) => tag === TAG.context + 3)?.content)
  return {
    commonName: subject.filter(({ oid }) => oid === COMMON_NAME).at(-1)?.text ?? '',
    organizations: subject.filter(({ oid }) => oid === ORGANIZATION).map(({ text }) => text),
    userIds: subject.filter(({ oid }) => oid === USER_ID).map(({ text }) => text),
    pathLength: pathLengthOf(extensions.get(BASIC_CONSTRAINTS)),
    hasNameConstraints: extensions.has(NAME_CONSTRAINTS),
  }
}

interface SubjectAttribute {
  readonly oid: string
  readonly text: string
}

const READ_ATTRIBUTES: ReadonlySet<string> = new Set([COMMON_NAME, ORGANIZATION, USER_ID])

/** A subject is a list of sets of attributes. Attributes that are not read may have any type. */
function attributesOf(sets: ReturnType<typeof derMembers>): readonly SubjectAttribute[] {
  return sets
    .flatMap((set) => derMembers(set, TAG.set))
    .flatMap((attribute) => {
      const [type, value, ...more] = derMembers(attribute, TAG.sequence)
      if (value === undefined || more.length > 0) throw new Error('a subject cannot be parsed')
      const oid = derOid(type)
      return READ_ATTRIBUTES.has(oid) ? [{ oid, text: derText(value) }] : []
    })
}

function extensionsOf(content: Buffer | undefined): ReadonlyMap<string, Buffer> {
  const found = new Map<string, Buffer>()
  if (content === undefined) return found
  for (const extension of derMembers(derValue(content), TAG.sequence)) {
    const members = derMembers(extension, TAG.sequence)
    const oid = derOid(members[0])
    if (found.has(oid)) throw new Error('an extension occurs twice')
    found.set(oid, derContent(members.at(-1), TAG.octetString))
  }
  return found
}

function pathLengthOf(extension: Buffer | undefined): number | undefined {
  if (extension === undefined) return undefined
  const members = derMembers(derValue(extension), TAG.sequence)
  const length = members.find(({ tag }) => tag === TAG.integer)
  return length === undefined ? undefined : derInteger(length)
}
