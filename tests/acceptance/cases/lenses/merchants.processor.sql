SET defaults.topic.autocreate=true;
SET auto.offset.reset='earliest';
SET commit.interval.ms='1000';
SET enable.auto.commit=false;
SET defaults.topic.partitions=3;
SET topic.currentMerchants.partitions=2;

WITH countriesStream AS (
  SELECT STREAM *
  FROM countries
);

WITH merchantsStream AS (
  SELECT STREAM *
  FROM merchants
);

WITH merchantsWithCountryInfoStream AS (
  SELECT STREAM
      m._key AS l_key
    , CONCAT(surname, ', ', m.name) AS fullname
    , address.country
    , language
    , platform
  FROM merchantsStream AS m
        JOIN countriesStream AS c
            ON m.address.country = c._key
        WITHIN 1h
);

WITH merchantsCorrectKey AS (
  SELECT STREAM
      l_key AS _key
    , fullname
    , country
    , language
    , platform
  FROM merchantsWithCountryInfoStream
);

INSERT INTO currentMerchants
SELECT STREAM *
FROM merchantsCorrectKey;

INSERT INTO merchantsPerPlatform
SELECT TABLE
  COUNT(*) AS merchants
FROM merchantsCorrectKey
GROUP BY platform;
