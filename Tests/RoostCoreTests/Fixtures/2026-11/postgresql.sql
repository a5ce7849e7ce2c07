
SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

SET default_tablespace = '';

SET default_table_access_method = heap;

CREATE TABLE public.access_head (
    id bigint NOT NULL,
    revision bigint NOT NULL
);

CREATE TABLE public.channel_heads (
    channel_id text NOT NULL COLLATE pg_catalog."C",
    seq bigint NOT NULL,
    member_count bigint NOT NULL,
    message_count bigint NOT NULL,
    last_activity bigint NOT NULL,
    is_deleted bigint DEFAULT 0 NOT NULL,
    last_message_at bigint,
    list_at bigint DEFAULT 0 NOT NULL,
    discovery text DEFAULT 'everyone'::text NOT NULL COLLATE pg_catalog."C"
);

CREATE TABLE public.channel_names (
    name text NOT NULL COLLATE pg_catalog."C",
    channel_id text NOT NULL COLLATE pg_catalog."C"
);

CREATE TABLE public.channel_tags (
    tag text NOT NULL COLLATE pg_catalog."C",
    channel_id text NOT NULL COLLATE pg_catalog."C"
);

CREATE TABLE public.channel_types (
    type text NOT NULL COLLATE pg_catalog."C",
    policy text NOT NULL
);

CREATE TABLE public.channels (
    channel_id text NOT NULL COLLATE pg_catalog."C",
    type text NOT NULL COLLATE pg_catalog."C",
    is_distinct bigint NOT NULL,
    display_name text,
    avatar_file_id text,
    metadata text,
    tags text NOT NULL,
    muted_until bigint,
    rate_limit bigint,
    rate_limited_until bigint,
    created_by text,
    change_seq bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    deleted_at bigint,
    cover_url text,
    custom_type text COLLATE pg_catalog."C",
    data text,
    metadata_version bigint DEFAULT 0 NOT NULL,
    metadata_updated_by text,
    is_ephemeral bigint DEFAULT 0 NOT NULL,
    discovery text DEFAULT 'everyone'::text NOT NULL COLLATE pg_catalog."C",
    joining text DEFAULT 'everyone'::text NOT NULL COLLATE pg_catalog."C",
    policy text,
    is_frozen bigint DEFAULT 0 NOT NULL,
    rate_limit_window bigint,
    distinct_key text COLLATE pg_catalog."C",
    name_key text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C"
);

CREATE TABLE public.effects (
    kind text NOT NULL COLLATE pg_catalog."C",
    effect_key text NOT NULL COLLATE pg_catalog."C",
    payload text NOT NULL,
    due_at bigint NOT NULL,
    revision bigint NOT NULL,
    attempts bigint NOT NULL,
    failure text,
    dead_at bigint
);

CREATE TABLE public.idempotency_keys (
    user_id text NOT NULL COLLATE pg_catalog."C",
    request_key text NOT NULL COLLATE pg_catalog."C",
    request text NOT NULL COLLATE pg_catalog."C",
    channel_id text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL
);

CREATE TABLE public.invitations (
    channel_id text NOT NULL COLLATE pg_catalog."C",
    user_id text NOT NULL COLLATE pg_catalog."C",
    inviter_id text NOT NULL COLLATE pg_catalog."C",
    welcome text,
    role text NOT NULL COLLATE pg_catalog."C",
    state text NOT NULL COLLATE pg_catalog."C",
    invited_at bigint NOT NULL,
    invited_seq bigint NOT NULL,
    ended_at bigint,
    revision bigint NOT NULL,
    channel_seq bigint NOT NULL,
    user_seq bigint NOT NULL,
    inviter_seq bigint NOT NULL
);

CREATE TABLE public.members (
    channel_id text NOT NULL COLLATE pg_catalog."C",
    user_id text NOT NULL COLLATE pg_catalog."C",
    role text NOT NULL COLLATE pg_catalog."C",
    state text NOT NULL COLLATE pg_catalog."C",
    joined_at bigint NOT NULL,
    change_seq bigint NOT NULL,
    user_seq bigint NOT NULL,
    read_seq bigint NOT NULL,
    read_count bigint NOT NULL,
    last_read_at bigint,
    last_sent_seq bigint NOT NULL,
    joined_seq bigint DEFAULT 0 NOT NULL,
    joined_user_seq bigint DEFAULT 0 NOT NULL,
    history_floor bigint DEFAULT 0 NOT NULL,
    hidden text DEFAULT 'unhidden'::text NOT NULL COLLATE pg_catalog."C",
    hidden_count bigint DEFAULT 0 NOT NULL,
    muted_until bigint,
    banned_until bigint
);

CREATE TABLE public.messages (
    channel_id text NOT NULL COLLATE pg_catalog."C",
    seq bigint NOT NULL,
    message_id bigint NOT NULL,
    change_seq bigint NOT NULL,
    ordinal bigint NOT NULL,
    sender_id text NOT NULL COLLATE pg_catalog."C",
    client_id text NOT NULL COLLATE pg_catalog."C",
    text text NOT NULL,
    custom_type text,
    data text,
    metadata text,
    tags text,
    parent_id bigint,
    created_at bigint NOT NULL,
    edited_at bigint,
    deleted_at bigint
);

CREATE TABLE public.migrations (
    name text NOT NULL
);

CREATE TABLE public.name_grams (
    kind text NOT NULL COLLATE pg_catalog."C",
    gram text NOT NULL COLLATE pg_catalog."C",
    id text NOT NULL COLLATE pg_catalog."C"
);

CREATE TABLE public.name_skeletons (
    kind text NOT NULL COLLATE pg_catalog."C",
    skeleton text NOT NULL COLLATE pg_catalog."C",
    id text NOT NULL COLLATE pg_catalog."C",
    is_sole bigint NOT NULL
);

CREATE TABLE public.revoked_tokens (
    token_id text NOT NULL COLLATE pg_catalog."C",
    expires_at bigint NOT NULL,
    revision bigint NOT NULL
);

CREATE TABLE public.roles (
    role text NOT NULL COLLATE pg_catalog."C",
    definition text NOT NULL
);

CREATE TABLE public.settings (
    name text NOT NULL COLLATE pg_catalog."C",
    value text NOT NULL
);

CREATE TABLE public.user_heads (
    user_id text NOT NULL COLLATE pg_catalog."C",
    seq bigint NOT NULL
);

CREATE TABLE public.users (
    user_id text NOT NULL COLLATE pg_catalog."C",
    display_name text,
    avatar_file_id text,
    metadata text,
    user_seq bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    auto_accept bigint DEFAULT 1 NOT NULL,
    name_key text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    deactivated_at bigint,
    tokens_valid_from bigint,
    access_revision bigint DEFAULT 0 NOT NULL,
    version bigint DEFAULT 1 NOT NULL
);

INSERT INTO public.channel_heads VALUES ('general', 9, 2, 6, 1795346293403, 0, 1795346293302, 1795346293302, 'everyone');
INSERT INTO public.channel_heads VALUES ('quiet', 2, 2, 1, 1795346293484, 0, 1795346293484, 1795346293484, 'everyone');
INSERT INTO public.channel_heads VALUES ('loud', 3, 2, 2, 1795346293607, 0, 1795346293607, 1795346293607, 'everyone');
INSERT INTO public.channel_heads VALUES ('club', 2, 2, 0, 1795346293666, 0, NULL, 1795346293627, 'members');

INSERT INTO public.channel_names VALUES ('general', 'general');
INSERT INTO public.channel_names VALUES ('community:general', 'general');
INSERT INTO public.channel_names VALUES ('quiet', 'quiet');
INSERT INTO public.channel_names VALUES ('community:quiet', 'quiet');
INSERT INTO public.channel_names VALUES ('loud', 'loud');
INSERT INTO public.channel_names VALUES ('community:loud', 'loud');
INSERT INTO public.channel_names VALUES ('club', 'club');
INSERT INTO public.channel_names VALUES ('group:club', 'club');

INSERT INTO public.channels VALUES ('general', 'community', 0, 'General', NULL, NULL, '[]', NULL, NULL, NULL, 'ann', 1, 1795346293082, 1795346293082, NULL, NULL, NULL, NULL, 0, NULL, 0, 'everyone', 'everyone', NULL, 0, NULL, NULL, 'general');
INSERT INTO public.channels VALUES ('quiet', 'community', 0, NULL, NULL, NULL, '[]', NULL, NULL, NULL, 'ann', 1, 1795346293455, 1795346293455, NULL, NULL, NULL, NULL, 0, NULL, 0, 'everyone', 'everyone', NULL, 0, NULL, NULL, '');
INSERT INTO public.channels VALUES ('loud', 'community', 0, NULL, NULL, NULL, '[]', NULL, NULL, NULL, 'ann', 1, 1795346293539, 1795346293539, NULL, NULL, NULL, NULL, 0, NULL, 0, 'everyone', 'everyone', NULL, 0, NULL, NULL, '');
INSERT INTO public.channels VALUES ('club', 'group', 0, NULL, NULL, NULL, '[]', NULL, NULL, NULL, 'ann', 1, 1795346293627, 1795346293627, NULL, NULL, NULL, NULL, 0, NULL, 0, 'members', 'invited', NULL, 0, NULL, NULL, '');

INSERT INTO public.invitations VALUES ('club', 'eve', 'ann', 'Come in!', 'member', 'accepted', 1795346293666, 2, 1795346293666, 1, 2, 2, 6);

INSERT INTO public.members VALUES ('general', 'ann', 'owner', 'member', 1795346293082, 1, 2, 1, 5, NULL, 6, 1, 2, 0, 'unhidden', 0, NULL, NULL);
INSERT INTO public.members VALUES ('general', 'bob', 'member', 'member', 1795346293082, 1, 3, 3, 3, 1795346293429, 7, 1, 2, 0, 'unhidden', 0, NULL, NULL);
INSERT INTO public.members VALUES ('quiet', 'ann', 'owner', 'member', 1795346293455, 1, 3, 1, 1, NULL, 2, 1, 3, 0, 'unhidden', 0, NULL, NULL);
INSERT INTO public.members VALUES ('quiet', 'bob', 'member', 'member', 1795346293455, 1, 5, 1, 0, NULL, 0, 1, 4, 0, 'hiddenAllowAutoUnhide', 1, NULL, NULL);
INSERT INTO public.members VALUES ('loud', 'bob', 'member', 'member', 1795346293539, 1, 7, 1, 0, NULL, 0, 1, 6, 0, 'hiddenAllowAutoUnhide', 1, NULL, NULL);
INSERT INTO public.members VALUES ('loud', 'ann', 'owner', 'member', 1795346293539, 1, 4, 1, 2, NULL, 3, 1, 4, 0, 'unhidden', 0, NULL, NULL);
INSERT INTO public.members VALUES ('club', 'ann', 'owner', 'member', 1795346293627, 1, 5, 1, 0, NULL, 0, 1, 5, 0, 'unhidden', 0, NULL, NULL);
INSERT INTO public.members VALUES ('club', 'eve', 'member', 'member', 1795346293666, 2, 2, 2, 0, NULL, 0, 2, 2, 0, 'unhidden', 0, NULL, NULL);

INSERT INTO public.messages VALUES ('general', 2, 382852265333514240, 2, 1, 'ann', 'a1', 'message 1', NULL, NULL, '{"n":1}', NULL, NULL, 1795346293106, NULL, NULL);
INSERT INTO public.messages VALUES ('general', 5, 382852265593561088, 5, 4, 'ann', 'a4', 'message 4', NULL, NULL, '{"n":4}', NULL, NULL, 1795346293168, NULL, NULL);
INSERT INTO public.messages VALUES ('general', 6, 382852265757138944, 6, 5, 'ann', 'a5', 'message 5', NULL, NULL, '{"n":5}', NULL, NULL, 1795346293207, NULL, NULL);
INSERT INTO public.messages VALUES ('general', 7, 382852266155597824, 7, 6, 'bob', 'b1', 'from bob', NULL, NULL, NULL, NULL, NULL, 1795346293302, NULL, NULL);
INSERT INTO public.messages VALUES ('general', 3, 382852265413206016, 8, 2, 'ann', 'a2', 'edited', NULL, NULL, '{"n":2}', NULL, NULL, 1795346293125, 1795346293382, NULL);
INSERT INTO public.messages VALUES ('general', 4, 382852265539035136, 9, 3, 'ann', 'a3', '', NULL, NULL, NULL, NULL, NULL, 1795346293155, NULL, 1795346293403);
INSERT INTO public.messages VALUES ('quiet', 2, 382852266919215104, 2, 1, 'ann', 'q1', 'before hiding', NULL, NULL, NULL, NULL, NULL, 1795346293484, NULL, NULL);
INSERT INTO public.messages VALUES ('loud', 2, 382852267280158720, 2, 1, 'ann', 'l1', 'before hiding', NULL, NULL, NULL, NULL, NULL, 1795346293570, NULL, NULL);
INSERT INTO public.messages VALUES ('loud', 3, 382852267435347968, 3, 2, 'ann', 'l2', 'after hiding', NULL, NULL, NULL, NULL, NULL, 1795346293607, NULL, NULL);

INSERT INTO public.migrations VALUES ('0001 foundation');
INSERT INTO public.migrations VALUES ('0002 stays');
INSERT INTO public.migrations VALUES ('0003 channels of every kind');
INSERT INTO public.migrations VALUES ('0004 letters and emptied channels');
INSERT INTO public.migrations VALUES ('0005 access');
INSERT INTO public.migrations VALUES ('0006 names and versions');
INSERT INTO public.migrations VALUES ('0007 skeletons of names');
INSERT INTO public.migrations VALUES ('0008 effects');

INSERT INTO public.name_grams VALUES ('channel', '^g', 'general');
INSERT INTO public.name_grams VALUES ('channel', '^ge', 'general');
INSERT INTO public.name_grams VALUES ('channel', 'ene', 'general');
INSERT INTO public.name_grams VALUES ('channel', 'era', 'general');
INSERT INTO public.name_grams VALUES ('channel', 'gen', 'general');
INSERT INTO public.name_grams VALUES ('channel', 'ner', 'general');
INSERT INTO public.name_grams VALUES ('channel', 'ral', 'general');

INSERT INTO public.name_skeletons VALUES ('user', 'ann', 'ann', 0);
INSERT INTO public.name_skeletons VALUES ('user', 'bob', 'bob', 0);
INSERT INTO public.name_skeletons VALUES ('user', 'eve', 'eve', 0);
INSERT INTO public.name_skeletons VALUES ('channel', 'general', 'general', 0);
INSERT INTO public.name_skeletons VALUES ('channel', 'cornrnunity:general', 'general', 0);
INSERT INTO public.name_skeletons VALUES ('channelName', 'General', 'general', 0);
INSERT INTO public.name_skeletons VALUES ('channel', 'quiet', 'quiet', 0);
INSERT INTO public.name_skeletons VALUES ('channel', 'cornrnunity:quiet', 'quiet', 0);
INSERT INTO public.name_skeletons VALUES ('channel', 'loud', 'loud', 0);
INSERT INTO public.name_skeletons VALUES ('channel', 'cornrnunity:loud', 'loud', 0);
INSERT INTO public.name_skeletons VALUES ('channel', 'club', 'club', 0);
INSERT INTO public.name_skeletons VALUES ('channel', 'group:club', 'club', 0);

INSERT INTO public.settings VALUES ('token-secret', 'Zml4dHVyZS1maXh0dXJlLWZpeHR1cmUtZml4dHVyZS0=');
INSERT INTO public.settings VALUES ('epoch', '6e5cdbd5-b55f-4c93-98a9-95a9278f1872');
INSERT INTO public.settings VALUES ('shared.channels-per-user', '2000');
INSERT INTO public.settings VALUES ('shared.history-for-new-members', 'true');
INSERT INTO public.settings VALUES ('shared.token-lifetime-max', '2592000');
INSERT INTO public.settings VALUES ('shared.confusable-names', 'allowed');
INSERT INTO public.settings VALUES ('shared.token-issuer', 'any');
INSERT INTO public.settings VALUES ('shared.token-audience', 'any');
INSERT INTO public.settings VALUES ('shared.bus-prefix', 'roost');
INSERT INTO public.settings VALUES ('shared.bus', 'none');
INSERT INTO public.settings VALUES ('shared.token-keys', 'token-secret');
INSERT INTO public.settings VALUES ('ids.646', '373879166164992');
INSERT INTO public.settings VALUES ('ids.708', '373879166910464');
INSERT INTO public.settings VALUES ('ids.765', '373879167414272');

INSERT INTO public.user_heads VALUES ('bob', 7);
INSERT INTO public.user_heads VALUES ('eve', 2);
INSERT INTO public.user_heads VALUES ('ann', 6);

INSERT INTO public.users VALUES ('ann', NULL, NULL, NULL, 1, 1795346292985, 1795346292985, 1, '', NULL, NULL, 0, 1);
INSERT INTO public.users VALUES ('bob', NULL, NULL, NULL, 1, 1795346293022, 1795346293022, 1, '', NULL, NULL, 0, 1);
INSERT INTO public.users VALUES ('eve', NULL, NULL, NULL, 1, 1795346293062, 1795346293062, 1, '', NULL, NULL, 0, 1);

ALTER TABLE ONLY public.access_head
    ADD CONSTRAINT access_head_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.channel_heads
    ADD CONSTRAINT channel_heads_pkey PRIMARY KEY (channel_id);

ALTER TABLE ONLY public.channel_names
    ADD CONSTRAINT channel_names_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.channel_tags
    ADD CONSTRAINT channel_tags_pkey PRIMARY KEY (tag, channel_id);

ALTER TABLE ONLY public.channel_types
    ADD CONSTRAINT channel_types_pkey PRIMARY KEY (type);

ALTER TABLE ONLY public.channels
    ADD CONSTRAINT channels_pkey PRIMARY KEY (channel_id);

ALTER TABLE ONLY public.effects
    ADD CONSTRAINT effects_pkey PRIMARY KEY (kind, effect_key);

ALTER TABLE ONLY public.idempotency_keys
    ADD CONSTRAINT idempotency_keys_pkey PRIMARY KEY (user_id, request_key);

ALTER TABLE ONLY public.invitations
    ADD CONSTRAINT invitations_pkey PRIMARY KEY (channel_id, user_id, inviter_id);

ALTER TABLE ONLY public.members
    ADD CONSTRAINT members_pkey PRIMARY KEY (channel_id, user_id);

ALTER TABLE ONLY public.messages
    ADD CONSTRAINT messages_pkey PRIMARY KEY (channel_id, seq);

ALTER TABLE ONLY public.migrations
    ADD CONSTRAINT migrations_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.name_grams
    ADD CONSTRAINT name_grams_pkey PRIMARY KEY (kind, gram, id);

ALTER TABLE ONLY public.name_skeletons
    ADD CONSTRAINT name_skeletons_pkey PRIMARY KEY (kind, skeleton, id);

ALTER TABLE ONLY public.revoked_tokens
    ADD CONSTRAINT revoked_tokens_pkey PRIMARY KEY (token_id);

ALTER TABLE ONLY public.roles
    ADD CONSTRAINT roles_pkey PRIMARY KEY (role);

ALTER TABLE ONLY public.settings
    ADD CONSTRAINT settings_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.user_heads
    ADD CONSTRAINT user_heads_pkey PRIMARY KEY (user_id);

ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_pkey PRIMARY KEY (user_id);

CREATE INDEX channel_heads_by_activity ON public.channel_heads USING btree (last_activity, channel_id) WHERE ((is_deleted = 0) AND (discovery = 'everyone'::text));

CREATE INDEX channel_heads_deleted_by_activity ON public.channel_heads USING btree (last_activity, channel_id) WHERE ((is_deleted = 1) AND (discovery <> 'membersOnly'::text));

CREATE INDEX channel_heads_kept_by_activity ON public.channel_heads USING btree (last_activity, channel_id) WHERE ((is_deleted = 0) AND (discovery <> 'everyone'::text) AND (discovery <> 'membersOnly'::text));

CREATE INDEX channels_by_creation ON public.channels USING btree (created_at, channel_id) WHERE ((deleted_at IS NULL) AND (discovery = 'everyone'::text));

CREATE INDEX channels_by_creator ON public.channels USING btree (created_by, created_at, channel_id);

CREATE INDEX channels_by_custom_type ON public.channels USING btree (custom_type, created_at, channel_id) WHERE (custom_type IS NOT NULL);

CREATE UNIQUE INDEX channels_by_distinct ON public.channels USING btree (distinct_key) WHERE (distinct_key IS NOT NULL);

CREATE INDEX channels_by_name ON public.channels USING btree (name_key, channel_id) WHERE ((deleted_at IS NULL) AND (discovery = 'everyone'::text));

CREATE INDEX channels_by_type ON public.channels USING btree (type, created_at, channel_id);

CREATE INDEX channels_deleted_by_creation ON public.channels USING btree (created_at, channel_id) WHERE ((deleted_at IS NOT NULL) AND (discovery <> 'membersOnly'::text));

CREATE INDEX channels_deleted_by_name ON public.channels USING btree (name_key, channel_id) WHERE ((deleted_at IS NOT NULL) AND (discovery <> 'membersOnly'::text));

CREATE INDEX channels_kept_by_creation ON public.channels USING btree (created_at, channel_id) WHERE ((deleted_at IS NULL) AND (discovery <> 'everyone'::text) AND (discovery <> 'membersOnly'::text));

CREATE INDEX channels_kept_by_name ON public.channels USING btree (name_key, channel_id) WHERE ((deleted_at IS NULL) AND (discovery <> 'everyone'::text) AND (discovery <> 'membersOnly'::text));

CREATE INDEX effects_by_due ON public.effects USING btree (kind, due_at) WHERE (dead_at IS NULL);

CREATE INDEX effects_dead ON public.effects USING btree (dead_at) WHERE (dead_at IS NOT NULL);

CREATE INDEX idempotency_keys_by_age ON public.idempotency_keys USING btree (created_at);

CREATE INDEX invitations_by_change ON public.invitations USING btree (channel_id, channel_seq);

CREATE INDEX invitations_by_inviter_seq ON public.invitations USING btree (inviter_id, inviter_seq);

CREATE INDEX invitations_by_user ON public.invitations USING btree (user_id, state, invited_at, channel_id);

CREATE INDEX invitations_by_user_seq ON public.invitations USING btree (user_id, user_seq);

CREATE UNIQUE INDEX invitations_open ON public.invitations USING btree (channel_id, user_id) WHERE (state = 'pending'::text);

CREATE INDEX invitations_pending ON public.invitations USING btree (channel_id, state, invited_seq, user_id);

CREATE INDEX members_banned ON public.members USING btree (channel_id, joined_seq, user_id) WHERE (banned_until IS NOT NULL);

CREATE INDEX members_banned_by_id ON public.members USING btree (channel_id, user_id) WHERE (banned_until IS NOT NULL);

CREATE INDEX members_by_change ON public.members USING btree (channel_id, change_seq);

CREATE INDEX members_by_joining ON public.members USING btree (channel_id, state, joined_seq, user_id);

CREATE INDEX members_by_role ON public.members USING btree (channel_id, role, joined_seq, user_id) WHERE (role <> 'member'::text);

CREATE INDEX members_by_role_and_id ON public.members USING btree (channel_id, role, user_id) WHERE (role <> 'member'::text);

CREATE INDEX members_by_user ON public.members USING btree (user_id, state, channel_id, read_count, hidden, hidden_count);

CREATE INDEX members_by_user_seq ON public.members USING btree (user_id, user_seq);

CREATE INDEX members_muted ON public.members USING btree (channel_id, joined_seq, user_id) WHERE (muted_until IS NOT NULL);

CREATE INDEX members_muted_by_id ON public.members USING btree (channel_id, user_id) WHERE (muted_until IS NOT NULL);

CREATE INDEX messages_by_change ON public.messages USING btree (channel_id, change_seq) WHERE (change_seq > seq);

CREATE UNIQUE INDEX messages_by_client ON public.messages USING btree (channel_id, sender_id, client_id);

CREATE UNIQUE INDEX messages_by_id ON public.messages USING btree (channel_id, message_id);

CREATE UNIQUE INDEX name_skeletons_sole ON public.name_skeletons USING btree (kind, skeleton) WHERE (is_sole = 1);

CREATE INDEX revoked_tokens_by_end ON public.revoked_tokens USING btree (expires_at);

CREATE INDEX revoked_tokens_by_revision ON public.revoked_tokens USING btree (revision);

CREATE INDEX users_by_access ON public.users USING btree (access_revision) WHERE (access_revision > 0);

