-- Pages of the gallery and the sets of a round, whatever their filter: each walks one
-- index from where it begins. An index over all verdicts also finds the images without
-- one, and serves the plans that Postgres makes without looking at the arguments,
-- which a partial index does not.
CREATE INDEX images_split_verdict ON images (project_id, split, verdict, id);
DROP INDEX images_queryable;

DROP INDEX images_verdict;
CREATE INDEX images_verdict ON images (project_id, verdict, id);

CREATE INDEX images_split_class ON images (project_id, split, class, id) WHERE class IS NOT NULL;
