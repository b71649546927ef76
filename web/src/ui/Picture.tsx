/** Images of a conversation: those of a prompt, and those that a call showed to the model. */

import { useQuery } from '@tanstack/react-query';
import * as api from '../net/api';
import styles from './Picture.module.css';

const asUrl = (blob: Blob) =>
  new Promise<string>((done, fail) => {
    const reader = new FileReader();
    reader.onload = () => done(String(reader.result));
    reader.onerror = () => fail(new Error('the picture cannot be read'));
    reader.readAsDataURL(blob);
  });

/** A data URL whose type comes from the first bytes, since the server sends all blobs untyped. */
async function pictureUrl(blob: Blob): Promise<string> {
  const head = new Uint8Array(await blob.slice(0, 4).arrayBuffer());
  const kind =
    head[0] === 0x89
      ? 'image/png'
      : head[0] === 0xff
        ? 'image/jpeg'
        : head[0] === 0x47
          ? 'image/gif'
          : 'image/webp';
  return asUrl(new Blob([blob], { type: kind }));
}

function Picture({ session, hash, alt }: { session: string; hash: string; alt: string }) {
  const url = useQuery({
    queryKey: ['picture', hash],
    queryFn: async () => pictureUrl(await api.blob(session, hash)),
    staleTime: Infinity,
  });
  return url.data ? (
    <img src={url.data} alt={alt} className={styles.picture} />
  ) : (
    <span className="faint">picture</span>
  );
}

export function Pictures({
  session,
  images,
  alt,
}: {
  session: string;
  images: string[];
  alt: string;
}) {
  if (images.length === 0) return null;
  return (
    <div className={styles.pictures}>
      {images.map((hash) => (
        <Picture key={hash} session={session} hash={hash} alt={alt} />
      ))}
    </div>
  );
}
